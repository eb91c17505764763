"""The examples in docs/launch: what of them can be checked without the machines that they are for."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from components.stepper import workers
from pipeline import configs, main

FOLDER = Path(__file__).parents[2] / "docs" / "launch"
FILES = sorted(FOLDER.iterdir())
SCRIPTS = [path for path in FILES if path.suffix in (".sh", ".sbatch")]
SCONTROL = '#!/bin/bash\n[[ "$*" == "show hostnames node[1-3]" ]] && printf "%s\\n" node1 node2 node3\n'
SRUN = '#!/bin/bash\nshift\nfor SLURM_PROCID in 0 1 2; do export SLURM_PROCID; "$@" || exit; done\n'
PYTHON = '#!/bin/bash\nprintf "%s\\n" "$TF_CONFIG" "$*"\n'


def programs(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_script_parses_and_stops_at_the_first_fault(path) -> None:
    subprocess.run(["bash", "-n", path], check=True)
    assert "set -euo pipefail" in path.read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_example_names_flags_and_gin_files_that_there_are(path) -> None:
    text = path.read_text()
    assert "-m pipeline.main" in text
    flags = set(re.findall(r"--(\w+)", " ".join(re.findall(r"-m pipeline\.main((?:[^\n\\]|\\\n)*)", text))))
    assert flags and flags <= set(main.defined_flags())
    named = set(re.findall(r"[\w/]+\.gin\b", text))
    assert named and {name.removesuffix(".gin") for name in named} <= set(configs.shipped())
    assert all((FOLDER / name).exists() for name in re.findall(r"docs/launch/([\w.]+)", text))
    assert not re.search(r"https?://|--(?:extra-)?index-url|/(?:home|root|work)/", text)


def test_slurm_script_tells_each_task_who_it_is(tmp_path) -> None:
    programs(tmp_path, scontrol=SCONTROL, srun=SRUN, python=PYTHON)
    slurm = {"SLURM_JOB_NODELIST": "node[1-3]", "SLURM_JOB_ID": "120345"}
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHON": str(tmp_path / "python")}
    done = subprocess.run(
        ["bash", FOLDER / "slurm.sbatch"],
        env={**os.environ, **slurm, **path, "GIN_FILE": "quickstart.gin", "WORKDIR": "a folder"},
        check=True,
        capture_output=True,
        text=True,
    )
    lines = done.stdout.splitlines()
    for index, (config, arguments) in enumerate(zip(lines[::2], lines[1::2], strict=True)):
        hosts = [f"node{number}:20345" for number in (1, 2, 3)]
        assert json.loads(config) == {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": index}}
        assert workers.cluster(config).index == index
        assert arguments == "-m pipeline.main --gin_file=quickstart.gin --workdir=a folder --strategy=multi_worker"
    assert len(lines) == 6


def test_kubernetes_file_parses_and_tells_each_pod_who_it_is(tmp_path) -> None:
    yaml = pytest.importorskip("yaml")
    service, job = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())
    spec = job["spec"]
    pod = spec["template"]["spec"]
    assert spec["completionMode"] == "Indexed" and service["spec"]["clusterIP"] == "None"
    assert pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    container = pod["containers"][0]
    variables = {each["name"]: each["value"] for each in container["env"]}
    assert int(variables["WORKERS"]) == spec["completions"] == spec["parallelism"]
    programs(tmp_path, python=PYTHON)
    done = subprocess.run(
        [*container["command"], *container["args"]],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "JOB_COMPLETION_INDEX": "1", **variables},
        check=True,
        capture_output=True,
        text=True,
    )
    found = workers.cluster(done.stdout.splitlines()[0])
    assert found == workers.Cluster(addresses=("gantry-0.gantry:2222", "gantry-1.gantry:2222"), index=1)


def test_loopback_command_of_the_readme_starts_two_workers(tmp_path) -> None:
    programs(tmp_path, python=PYTHON)
    command = re.search(r"```bash\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)[1]
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check=True,
        capture_output=True,
        text=True,
    )
    configs_found = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert sorted(workers.cluster(config).index for config in configs_found) == [0, 1]
