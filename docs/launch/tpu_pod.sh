#!/usr/bin/env bash
# Trains on a TPU slice of several hosts. Run it on your own machine, in the source tree; run it again to go on.
#   TPU=my-slice ZONE=us-central2-b bash docs/launch/tpu_pod.sh
# The slice must have a runtime for TensorFlow on several hosts, of the release installed below: its name holds "-pod".
set -euo pipefail

: "${TPU:?the name of the slice}" "${ZONE:?its zone}"
GIN_FILE=${GIN_FILE:-cgan_tpu.gin}
WORKDIR=${WORKDIR:-runs/cgan_tpu} # on host 0; name a mounted folder to keep it when the slice is deleted

on() { # on all|HOST COMMAND
  gcloud compute tpus tpu-vm ssh "$TPU" --zone="$ZONE" --worker="$1" --command="$2"
}

# The same source and packages on every host.
tar -czf /tmp/gantry.tar.gz pyproject.toml README.md LICENSE pipeline components gin tools
gcloud compute tpus tpu-vm scp /tmp/gantry.tar.gz "$TPU": --zone="$ZONE" --worker=all
on all "mkdir -p gantry && tar -xzf gantry.tar.gz -C gantry && cd gantry && python3 -m venv .venv &&
  .venv/bin/python -m pip install -e '.[tpu]' && .venv/bin/python -m pip uninstall -y tensorflow &&
  .venv/bin/python -m pip install --force-reinstall --no-deps 'tensorflow-tpu<2.21'"

# One program drives the chips of all hosts, from host 0: TensorFlow reaches the others through their runtime. So there is
# no TF_CONFIG here, and host 0's own chips too are left to the runtime (TPU_LOAD_LIBRARY=0).
on 0 "cd gantry && export TPU_NAME='$TPU' TPU_LOAD_LIBRARY=0 &&
  exec .venv/bin/python -m pipeline.main --gin_file='$GIN_FILE' --workdir='$WORKDIR' --strategy=tpu --require_accelerator"
