#!/usr/bin/env bash
# Runs inside the machine that ./test boots. Ends by powering it off.
set -euo pipefail
export STRIDE_ADDRESS=unix:/run/stride/stride.sock

say() { echo "boot-test: $*"; }

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

property() { systemctl show --value --property "$1" strided.service; }

run_job() {
  stride ufunc 'x + 1' x=/x.npy -o /tmp/y.npy
  [[ $(stat -c %s /tmp/y.npy) == $(stat -c %s /x.npy) ]]
}

systemctl start strided.service
say "started, as $(ps -o user= -p "$(property MainPID)" 2>/dev/null || stat -c %U "/proc/$(property MainPID)")"
[[ $(stat -c %U "/proc/$(property MainPID)") == stride ]]
stride devices
run_job
say "a job ran under the unit's restrictions"

first=$(property MainPID)
kill -9 "$first"
for _ in $(seq 100); do
  [[ $(property ActiveState) == active && $(property MainPID) != "$first" ]] && break
  sleep 0.2
done
[[ $(property ActiveState) == active && $(property NRestarts) == 1 ]]
run_job
say "killed, restarted once, and a job ran again"

sleep 35 # longer than WatchdogSec
[[ $(property NRestarts) == 1 ]]
say "the watchdog is fed"

systemctl stop strided.service
[[ $(property Result) == success ]]
say "stopped clean"

# 1326 is the kernel's record of a system call that a filter answered with a signal.
if journalctl --no-pager --quiet --dmesg | grep 'type=1326'; then
  say "a system call was refused"
  exit 1
fi
say "PASSED"
