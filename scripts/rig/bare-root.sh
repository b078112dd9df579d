#!/usr/bin/env bash
# A bare Debian of its own beside this machine's, to see what a new user sees: debootstrap's minimal variant with git, make and certificates,
# and this checkout at the same path, with its build folders and with the compiler cache of this machine.
# Usage: scripts/rig/bare-root.sh new [SUITE]                    makes it afresh (SUITE: bookworm)
#        scripts/rig/bare-root.sh run [OPTION]... SUITE COMMAND...   runs a command there, as root, in this checkout
#          --no-terminals   without /dev/pts, as in many build machines: no program gets a pseudo-terminal
#          --no-network     without any network
#          --own-build      build/ is a folder of its own there (build/bare-root/SUITE-build), not this checkout's
#          --exec           COMMAND takes the place of this process, which a signal reaches then; without it, COMMAND has process numbers
#                           of its own, and a signal that it sends reaches nothing outside
#        scripts/rig/bare-root.sh try SUITE                      README's commands there, `make run` and `make test`, in a build folder of its own:
#                                                            by hand or weekly for trixie, whose compilers are newer
# It is in build/bare-root, the minimal system that it is copied from beside it (a week long). Needs root, debootstrap (scripts/setup.sh bare)
# and the network: the addresses of Debian and all settings are those of this machine's apt.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
place=$here/build/bare-root
say() { echo "bare-root: $*" >&2; }
fail() { say "$*"; exit 1; }

[ "$(id -u)" = 0 ] || fail "it takes root to make a root folder of Debian: run it as root"

# "ADDRESS SUITE COMPONENTS" of what this machine's apt has of Debian, for another suite of it.
sources() {
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk -v own="$(. /etc/os-release && echo "$VERSION_CODENAME")" -v wanted="$1" '$2 ~ "^" own "(-updates|-security)?$" { sub(own, wanted, $2); print }' | sort -u
}

make_base() {
  local suite=$1 base=$place/$1-base
  if [ -n "$(find "$base" -maxdepth 0 -mtime -7 2>/dev/null)" ]; then return; fi
  command -v debootstrap >/dev/null || fail "debootstrap is not installed: scripts/setup.sh bare"
  local from mirror
  from=$(sources "$suite")
  mirror=$(awk -v suite="$suite" '$2 == suite { print $1; exit }' <<<"$from")
  [ -n "$mirror" ] || fail "this machine's apt has no address of Debian to take $suite from (apt-get indextargets); is this a Debian?"
  say "debootstrap $suite"
  rm -rf "$base" "$base.part"
  mkdir -p "$place"
  debootstrap --variant=minbase --include=git,make,ca-certificates "$suite" "$base.part" "$mirror" >"$place/debootstrap.log" 2>&1 || {
    tail -20 "$place/debootstrap.log" >&2
    fail "debootstrap could not make $suite"
  }
  # Updates of Debian as here, and what this machine's apt needs to reach it.
  awk '{ print "deb", $1, $2, $3 }' <<<"$from" >"$base.part/etc/apt/sources.list"
  apt-config dump Acquire | grep -v '^Acquire::IndexTargets' >"$base.part/etc/apt/apt.conf.d/90-as-outside" || true
  cp -a /etc/apt/auth.conf* "$base.part/etc/apt/" 2>/dev/null || true
  rm -f "$base.part"/var/cache/apt/archives/*.deb
  touch "$base.part"
  mv "$base.part" "$base"
}

new() {
  make_base "$1"
  rm -rf "${place:?}/$1"
  cp -a --reflink=auto "$place/$1-base" "$place/$1"
}

# What an environment of this machine says about the network and the compiler cache; nothing else of it is there.
kept_variables() {
  env -0 | grep -zE '^([a-z]+_proxy|[A-Z]+_PROXY|PIP_[A-Z_]+|CCACHE_(BASEDIR|NOHASHDIR)|GIMBAL_(MERGE_TESTS|KERNEL_CACHE)|FUZZ_SECONDS)=' || true
}

# In namespaces of its own: mounts end with it.
enter() {
  local suite=$1 terminals=$2 own_build=$3
  shift 3
  local root=$place/$suite
  bind() { mkdir -p "$root$1"; mount --bind ${2:+-o "$2"} "$1" "$root$1"; }
  mount --make-rprivate /
  bind "$here"
  if [ "$own_build" = yes ]; then
    mkdir -p "$place/$suite-build"
    mount --bind "$place/$suite-build" "$root$here/build"
  fi
  local cache=${CCACHE_DIR:-$HOME/.cache/ccache} git_folder
  mkdir -p "$cache" "$root/root/.cache/ccache"
  mount --bind "$cache" "$root/root/.cache/ccache"
  [ -z "${GIMBAL_KERNEL_CACHE-}" ] || { mkdir -p "$GIMBAL_KERNEL_CACHE"; bind "$GIMBAL_KERNEL_CACHE"; }
  git_folder=$(realpath "$(git -C "$here" rev-parse --git-common-dir 2>/dev/null || echo "$here")")
  case $git_folder in "$here"*) ;; *) bind "$git_folder" ;; esac  # of a work tree
  # Reference data beside the checkout.
  local shared=$here/../shared
  if [ -e "$shared" ]; then
    mkdir -p "$root$here/../shared"
    mount --bind -o ro "$(realpath "$shared")" "$root$(realpath -s "$shared")"
  fi
  mount -t proc proc "$root/proc"
  mount -t sysfs -o ro sys "$root/sys" 2>/dev/null || mount --rbind /sys "$root/sys"
  mount -t tmpfs -o mode=755 dev "$root/dev"
  local device
  for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
  done
  ln -s /proc/self/fd "$root/dev/fd"
  ln -s fd/0 "$root/dev/stdin"; ln -s fd/1 "$root/dev/stdout"; ln -s fd/2 "$root/dev/stderr"
  mkdir -m 1777 "$root/dev/shm"
  mount -t tmpfs shm "$root/dev/shm"
  if [ "$terminals" = yes ]; then
    mkdir "$root/dev/pts"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx"
  fi
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  # Certificates that this machine trusts beyond Debian's.
  if [ -e /etc/ssl/certs/ca-certificates.crt ]; then mount --bind -o ro /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"; fi
  local variables=()
  mapfile -d '' variables < <(kept_variables)
  exec chroot "$root" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM="${TERM:-dumb}" LANG=C.UTF-8 \
    "${variables[@]}" sh -c 'cd "$0" && if [ $$ != 1 ]; then exec "$@"; fi; "$@"; exit $?' "$here" "$@"  # process 1 buries orphans: a shell does
}

command=${1:-}
[ $# = 0 ] || shift
case $command in
  new) new "${1:-bookworm}" ;;
  run)
    terminals=yes own_build=no network=() way=(--mount --pid --fork --kill-child)
    while :; do
      case ${1:-} in
        --no-terminals) terminals=no ;;
        --no-network) network=(--net) ;;
        --own-build) own_build=yes ;;
        --exec) way=(--mount) ;;
        *) break ;;
      esac
      shift
    done
    [ $# -ge 2 ] || { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
    [ -e "$place/$1/etc/debian_version" ] || new "$1"
    suite=$1
    shift
    exec unshare "${way[@]}" "${network[@]}" "$0" enter "$suite" "$terminals" "$own_build" "$@"
    ;;
  try)
    [ $# = 1 ] || { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
    new "$1"
    exec "$here/scripts/check/readme.py" --root "$1" --own-build
    ;;
  enter) enter "$@" ;;
  *) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; [ "$command" = --help ] || exit 2 ;;
esac
