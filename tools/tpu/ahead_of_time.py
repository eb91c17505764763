"""Compiles a StableHLO module for one core of a TPU that need not be there; a process of its own, without TensorFlow.

    python -m tools.tpu.ahead_of_time MODULE TOPOLOGY [TOPOLOGY...]

Prints one line of JSON for each topology: `topology`, `devices`, and either `memory` and `cost`, or `error`. It uses
private names of jax, which is why pyproject.toml bounds its version from above too.
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_MEMORY = ("argument", "temp", "generated_code", "output", "alias")
_COST = {"flops": "flops", "bytes": "bytes accessed"}


def main(argv: Sequence[str]) -> int:
    """Compile `argv[1]` for each topology that follows; return 0, as a failure to compile is an answer too."""
    # Without these, libtpu asks a metadata server that only machines with TPUs have, for minutes.
    os.environ.update(TPU_SKIP_MDS_QUERY="1", JAX_PLATFORMS="cpu", ALLOW_MULTIPLE_LIBTPU_LOAD="1")
    module = Path(argv[1]).read_bytes()
    for topology in argv[2:]:
        print(json.dumps({"topology": topology, **_answer(module, topology)}), flush=True)
    return 0


def _answer(module: bytes, topology: str) -> dict[str, Any]:
    from jax.experimental import topologies

    try:
        devices = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices
    except Exception as error:  # jax and libtpu have no one kind of error for it
        return {"devices": 0, "error": f"no such topology: {_first_line(error)}"}
    answer = {"devices": len(devices), "chip": devices[0].device_kind}
    start = time.perf_counter()
    try:
        compiled = _compile(module, devices[0])
    except Exception as error:
        return {**answer, "error": str(error)[:20000]}
    memory = compiled.get_compiled_memory_stats()
    cost = compiled.cost_analysis()
    cost = cost[0] if isinstance(cost, list) else cost
    return {
        **answer,
        "seconds": time.perf_counter() - start,
        "memory": {name: int(getattr(memory, f"{name}_size_in_bytes")) for name in _MEMORY},
        "cost": {name: float(cost.get(key, 0.0)) for name, key in _COST.items()},
    }


def _compile(module: bytes, device: Any) -> Any:
    """Return the executable of a module for one device."""
    import numpy as np
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax._src.lib.mlir import ir

    with mlir.make_ir_context():
        parsed = ir.Module.parse(module)
        # TensorFlow leaves a copy before each variable that it assigns; libtpu does not know the operation.
        for operation in list(_walk(parsed.operation)):
            if operation.name == "mhlo.copy":
                operation.results[0].replace_all_uses_with(operation.operands[0])
                operation.erase()
        options = compiler.get_compile_options(1, 1, device_assignment=np.array([[0]]))
        devices = xla_client.DeviceList((device,))
        return device.client.compile(parsed, executable_devices=devices, compile_options=options)


def _walk(operation: Any) -> Iterator[Any]:
    for region in operation.regions:
        for block in region:
            for inner in block:
                yield from _walk(inner.operation)
                yield inner.operation


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv))
