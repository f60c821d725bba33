#!/usr/bin/env bash
# Runs as root inside the machine that ./test boots, with check-jobs in PATH. Powers the machine off at its end.
set -euo pipefail
export STRIDE_ADDRESS=unix:/run/stride/stride.sock

say() { echo "boot-test: $(cut -d. -f1 /proc/uptime) s: $*"; }

finish() {
  local code=$?
  set +e
  if ((code != 0)); then
    say "FAILED, exit code $code in: $BASH_COMMAND"
    systemctl status --no-pager --lines=0 strided.service
    journalctl --no-pager --quiet --unit strided.service --lines 30
  fi
  systemctl poweroff --force
}
trap finish EXIT

fail() {
  say "FAILED: $*"
  exit 1
}

property() { systemctl show --value --property "$1" strided.service; }

# Runs the jobs as a user whose only right is the group stride. Connecting may time out on a busy emulated machine: exit
# code 14 (no daemon reached) is reported and retried. A dead daemon fails all three attempts.
run_jobs() {
  local code
  for _ in 1 2 3; do
    code=0
    setpriv --reuid client --regid client --init-groups env HOME=/tmp check-jobs || code=$?
    ((code == 14)) || return $code
    say "no daemon reached in time; once more"
  done
  return $code
}

# restarted HOW_OFTEN OLD_PID: waits until the unit is ready again. One query returns all three properties, so that they
# are consistent.
restarted() {
  local end=$((SECONDS + 90)) state
  while ((SECONDS < end)); do
    state=$(systemctl show --property ActiveState,MainPID,NRestarts strided.service | sort | paste -sd' ')
    [[ $state =~ ^ActiveState=active\ MainPID=([0-9]+)\ NRestarts=$1$ && ${BASH_REMATCH[1]} != "$2" ]] && return
    sleep 0.2
  done
  fail "not restarted $1 times: $state"
}

# Checks every process of the unit, including workers and compilers: the daemon's user, no capability, no way to gain
# one, and the system call filter.
check_confinement() {
  local pid programs=()
  for pid in $(cat /sys/fs/cgroup/system.slice/strided.service/cgroup.procs); do
    [[ $(stat -c %U "/proc/$pid") == stride ]] || fail "process $pid runs as $(stat -c %U "/proc/$pid")"
    for line in 'CapEff:\s0000000000000000' 'CapBnd:\s0000000000000000' 'NoNewPrivs:\s1' 'Seccomp:\s2'; do
      grep -Pq "^$line$" "/proc/$pid/status" || fail "process $pid: $(grep "^${line%%:*}" "/proc/$pid/status")"
    done
    programs+=("$(basename "$(readlink "/proc/$pid/exe")")")
  done
  say "confined: ${programs[*]}"
  [[ " ${programs[*]} " == *" strided "* && " ${programs[*]} " == *" stride-worker-cpu "* ]] ||
    fail "a program is missing"
}

useradd --groups stride client
systemctl start strided.service
say "started, ready"
stride devices
run_jobs
check_confinement

# This array must survive every restart of the daemon.
as_client() { setpriv --reuid client --regid client --init-groups env HOME=/tmp "$@"; }
as_client stride ufunc add 20 22 -o /tmp/kept.npy
as_client stride put /tmp/kept.npy kept --quiet
kept() { cmp <(as_client stride get kept --raw -o - --quiet) <(tail -c 8 /tmp/kept.npy); }

first=$(property MainPID)
kill -9 "$first"
restarted 1 "$first"
run_jobs
kept || fail "the array was lost with the daemon"
say "killed, restarted once, jobs ran again, and the array is there"

sleep 35 # longer than WatchdogSec
[[ $(property NRestarts) == 1 ]] || fail "restarted while nothing happened"
say "the watchdog is fed"

second=$(property MainPID)
kill -STOP "$second"
restarted 2 "$second"
run_jobs
kept || fail "the array was lost with the daemon that the watchdog killed"
say "stopped feeding the watchdog, restarted, jobs ran again, and the array is there"

cd /tmp
check-jobs --kernels .
wait_kernel() {
  stride kernel wait.cu --quiet --entry wait --grid 1 --block 1 'out:int64[1]' "$1:int64" --raw -o - |
    od -An -t d8 | tr -d ' '
}
[[ $(wait_kernel 0) == 42 ]] || fail "the waiting kernel is wrong" # and compiled
wait_kernel 30000000000 >drained & # ticks: about ten seconds, since a program starts slowly under emulation
client=$!
until stride top --once --json | grep -q '"queue_depth":1'; do
  kill -0 $client || fail "the job ended before the stop: $(cat drained)"
done
systemctl stop strided.service
wait $client
[[ $(cat drained) == 42 && $(property Result) == success ]] ||
  fail "stopped with $(property Result); the job's answer: $(cat drained)"
say "stopped clean, and the job in flight was answered first"

# 1326 is the kernel's audit record of a system call that a filter refused. 435 is clone3: RestrictNamespaces cannot
# read its arguments and returns ENOSYS, so the C library uses clone.
if journalctl --no-pager --quiet --boot _TRANSPORT=audit | grep SECCOMP | grep -v 'syscall=435 ' >/tmp/refused; then
  head -5 /tmp/refused
  fail "$(wc -l </tmp/refused) system calls were refused"
fi
journalctl --no-pager --quiet --boot _TRANSPORT=audit | grep -q 'comm="strided".* syscall=435 ' ||
  fail "refusals are not recorded"
say "PASSED"
