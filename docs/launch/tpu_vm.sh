#!/usr/bin/env bash
# Trains on the TPU that is attached to this VM. Run it on the VM, in the source tree; run it again to go on.
set -euo pipefail

GIN_FILE=${GIN_FILE:-cgan_tpu.gin}
WORKDIR=${WORKDIR:-runs/cgan_tpu} # on the VM's own disk, which goes with the VM: copy it, or name a mounted folder

# Once. tensorflow-tpu and tensorflow hold the same files, so only the former may stay.
if [[ ! -x .venv/bin/python ]]; then
  python3 -m venv .venv
  .venv/bin/python -m pip install -e '.[tpu]'
  .venv/bin/python -m pip uninstall -y tensorflow
  .venv/bin/python -m pip install --force-reinstall --no-deps 'tensorflow-tpu<2.21'
fi

# exec: a signal to this script, such as the one that comes before a preemption, is one to the run, which then saves.
exec .venv/bin/python -m pipeline.main --gin_file="$GIN_FILE" --workdir="$WORKDIR" --strategy=tpu --require_accelerator
