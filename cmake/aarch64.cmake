# Builds for 64-bit ARM on another machine, with Debian's cross compiler and the arm64 libraries that
# `scripts/setup.sh arm` installs beside the native ones, and runs what it built in QEMU's emulation of one process.
# The environment variable QEMU_CPU names the CPU to emulate (all that QEMU knows when it is not set): see
# `qemu-aarch64 -cpu help`.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# Without -L /usr/aarch64-linux-gnu: it brings the loader of another build of the C library than the libc.so.6 that is
# found, and the first thread to be started never comes back.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
