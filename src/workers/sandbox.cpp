#include "workers/sandbox.h"

#ifdef __linux__
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/format.h"
#endif

namespace gimbal {

#ifdef __linux__
namespace {

[[maybe_unused]] std::string lacking(const char* what) {
  return format("{}: {}", what, std::strerror(errno));
}

// A set of rules that handles every access to files and allows none.
[[maybe_unused]] bool forbid_files() {
  landlock_ruleset_attr rules{};
  rules.handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;  // all of version 1
  const long set = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
  if (set < 0) return false;
  const long refused = syscall(SYS_landlock_restrict_self, set, 0);
  const int problem = errno;
  close(int(set));
  errno = problem;
  return refused == 0;
}

// The calls that computing needs: memory, threads, time, and reads and writes of open descriptors. Each of
// them affects only this process and its descriptors.
constexpr uint32_t kNeeded[] = {
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_sendto,
    SYS_recvfrom,
    SYS_sendmsg,
    SYS_recvmsg,
    SYS_ppoll,
    SYS_close,
    SYS_fstat,
    SYS_lseek,
    SYS_shutdown,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_clone,
    SYS_clone3,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_exit,
    SYS_exit_group,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_setaffinity,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_clock_gettime,
    SYS_gettimeofday,
    SYS_getrandom,
    SYS_getpid,
    SYS_gettid,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_sysinfo,
    SYS_getrusage,
    SYS_membarrier,
#ifdef SYS_poll
    SYS_poll,
#endif
};

#if defined(__x86_64__)
constexpr uint32_t kArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArch = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArch = 0;
#endif

// All others fail with EPERM: a library continues after a failed attempt.
[[maybe_unused]] bool forbid_calls() {
  if (kArch == 0) return errno = ENOSYS, false;
  std::vector<sock_filter> program;
  const auto add = [&](uint16_t code, uint32_t k, uint8_t yes = 0, uint8_t no = 0) {
    program.push_back({code, yes, no, k});
  };
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  add(BPF_JMP | BPF_JEQ | BPF_K, kArch, 1, 0);
  add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);  // calls of 32 bits have other numbers
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (const uint32_t call : kNeeded) {
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
#ifdef SYS_arch_prctl
  // Libraries ask for the tile registers of AMX when they compute first: ARCH_GET_XCOMP_SUPP to
  // ARCH_REQ_XCOMP_PERM of asm/prctl.h, in the low half of the first argument.
  add(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 4);
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0]));
  add(BPF_JMP | BPF_JGE | BPF_K, 0x1021, 0, 2);
  add(BPF_JMP | BPF_JGT | BPF_K, 0x1023, 1, 0);
  add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
#endif
  add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  const sock_fprog filter{uint16_t(program.size()), program.data()};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

}  // namespace

// Sanitizers read files and query the kernel about addresses, and treat a refusal as a fault.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
Sandbox enter_sandbox() { return {{}, {"seccomp and Landlock: this program was built with a sanitizer"}}; }
#else
Sandbox enter_sandbox() {
  Sandbox out;
  const auto note = [&](bool done, std::string name, const char* lacks) {
    if (done) out.in_force.push_back(std::move(name));
    else out.missing.push_back(lacking(lacks));
  };
  note(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges", "no new privileges");
  note(forbid_files(), "no files (Landlock)", "Landlock");
  note(forbid_calls(), format("{} system calls (seccomp)", std::size(kNeeded)), "seccomp");
  return out;
}
#endif
#else
Sandbox enter_sandbox() { return {{}, {"this system has no Landlock and no seccomp"}}; }
#endif

}  // namespace gimbal
