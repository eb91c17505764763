"""Workers wait for each other before TensorFlow does: its own wait hears no signal and lets no thread speak."""

import socket
import time
from collections.abc import Sequence

from absl import logging

from components.interfaces import UserError

_LOOK_SECONDS = 0.2


def meet(addresses: Sequence[str], index: int, *, patience: float = 20.0, most: float = 3600.0) -> None:
    """Return when every worker has been seen, at its port, by this one.

    Each listens at its own port until it has seen all others, and leaves the port to TensorFlow's server then; so a
    worker that looks later sees that server. Ctrl-C and SIGTERM end the wait as they end any Python program.

    Args:
      addresses: `host:port` of every worker.
      index: which of them this process is.
      patience: seconds after which it is said who is awaited.
      most: seconds after which it is an error.

    Raises:
      UserError: this worker's port is taken, or some did not come.
    """
    missing = [address for number, address in enumerate(addresses) if number != index]
    begun, has_spoken = time.monotonic(), False
    with _listening(addresses[index]):
        while missing := [address for address in missing if not _is_there(address)]:
            waited = time.monotonic() - begun
            if waited > most:
                raise UserError(
                    f"All {len(addresses)} workers of TF_CONFIG start together. Received none at {', '.join(missing)} "
                    f"for {most:,.0f} s. Start them, or correct TF_CONFIG on all workers."
                )
            if waited > patience and not has_spoken:
                has_spoken = True
                text = "Still waiting for %s, of %d workers. This is worker %d."
                logging.warning(text, ", ".join(missing), len(addresses), index)
            time.sleep(_LOOK_SECONDS)


def port_is_taken(address: str) -> UserError:
    """Return what is raised where a worker cannot open its port."""
    return UserError(
        f"A worker needs the port that TF_CONFIG gives it. Received for this one {address}, where nothing can be "
        "opened: another process has it, such as a worker of a run before. End that, or give TF_CONFIG another port on "
        "all workers."
    )


def _listening(address: str) -> socket.socket:
    """Return an open port; what connects is answered by the system, nothing is read."""
    port = int(address.rpartition(":")[2])
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    try:  # at every interface, as TensorFlow's server
        return socket.create_server(("", port), family=family, dualstack_ipv6=both, backlog=512)
    except OSError as error:
        raise port_is_taken(address) from error


def _is_there(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=2.0).close()
    except OSError:
        return False
    return True
