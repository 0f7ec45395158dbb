// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracer in guests, against workloads whose bytes are known: by process where files are too many to be named, past
//! the page cache, and as seen by a recorder with four capabilities beside one of root.

use crate::lab::{guest, is_skipped, run};
use serde_json::Value;

/// Records as root and with four capabilities at once while two processes of one cgroup create 2,503 files each, of which
/// one removes its files, and a process writes past the cache. Prints the numbers of the processes, what the kernel
/// counted past the cache, and both ledgers.
const WORKLOADS: &str = r#"
cd /data
few=+bpf,+perfmon,+dac_read_search,+sys_ptrace
mkdir -m 777 /tmp/few; mkdir /sys/fs/cgroup/many /sys/fs/cgroup/direct
sync
record() { exec floodline record --trace on --trace-budget 10000 --every 1s -o $1; }
record /tmp/root.flr & root=$!
(ulimit -l unlimited; exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all,$few --ambient-caps=-all,$few \
    --bounding-set=-all,$few floodline record --trace on --trace-budget 10000 --every 1s -o /tmp/few/few.flr) & other=$!
for file in /tmp/root.flr /tmp/few/few.flr; do
    until [ "$(floodline replay $file 2> /dev/null | wc -l)" -ge 3 ]; do
        sleep 0.2; kill -0 $root && kill -0 $other || exit 9
    done
done
create() { mkdir $1; n=0; while [ $n -lt 2503 ]; do echo > $1/$n; n=$((n + 1)); done; }
(echo $BASHPID > /sys/fs/cgroup/many/cgroup.procs
    (echo "kept $BASHPID"; create kept) & (echo "gone $BASHPID"; create gone; rm -r gone) & wait)
(echo $BASHPID > /sys/fs/cgroup/direct/cgroup.procs; dd if=/dev/zero of=direct bs=64k count=101 oflag=direct 2> /dev/null)
sync -f .; sleep 1; kill -INT $root $other; wait $root $other
echo "direct $(sed -n 's/.*wbytes=\([1-9][0-9]*\).*/\1/p' /sys/fs/cgroup/direct/io.stat)"
floodline ledger /tmp/root.flr --format json; floodline ledger /tmp/few/few.flr --format json
"#;

/// Bytes of one of the 2,503 files.
const FILE: u64 = 4096;

#[test]
fn vm_owners_are_known_and_four_capabilities_see_all_that_root_sees() {
    let Some((_guest, program)) = guest() else { return };
    for kernel in ["5.10", "7.2"] {
        let run = run(&["shell", "--kernel", kernel, "--guest-program", &program, "--", "bash", "-c", WORKLOADS]);
        if is_skipped(&run) {
            return;
        }
        assert_eq!(run.code, 0, "{kernel}: {run}");
        let told = |name: &str| -> u64 {
            let line = run.stdout.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
            line.unwrap_or_else(|| panic!("no {name}: {kernel}: {run}"))
        };
        let ledgers: Vec<Value> = run.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let ledgers: Vec<&Value> = ledgers.iter().filter(|ledger| ledger.is_object()).collect();
        let [root, few] = ledgers[..] else { panic!("two ledgers: {kernel}: {run}") };
        for ledger in [root, few] {
            let of = |name: &str, field: &str| {
                let lines = ledger["processes"].as_array().into_iter().flatten();
                lines.filter(|line| line["pid"] == told(name)).filter_map(|line| line[field].as_u64()).sum::<u64>()
            };
            // Some of the files that are removed were written before: no more than what was not dropped.
            let dropped = ledger["totals"]["cancelled_bytes"].as_u64().unwrap_or(0);
            let (kept, gone) = (of("kept", "device_bytes"), of("gone", "device_bytes"));
            assert!(kept >= 2503 * FILE * 95 / 100, "{kept} of {}: {kernel}: {run}", 2503 * FILE);
            let left = of("gone", "dirtied_bytes").saturating_sub(dropped);
            assert!(gone <= left + 2503 * FILE * 5 / 100, "{gone}, {left} left: {kernel}: {run}");
            assert_eq!(ledger["totals"]["queued"]["direct_bytes"], told("direct"), "{kernel}: {run}");
            assert_eq!(ledger["mismatches"], serde_json::json!([]), "{kernel}: {run}");
        }
        assert_eq!(root["gaps"], few["gaps"], "{kernel}: {run}");
        // The two do not begin and end at the same moment.
        for field in ["application_bytes", "dirtied_bytes", "credited_bytes"] {
            let [of_root, of_few] = [root, few].map(|ledger| ledger["totals"][field].as_u64().unwrap_or(0));
            let differs = of_root.abs_diff(of_few);
            assert!(differs <= of_root / 50 + (1 << 20), "{field}: {of_root}, {of_few}: {kernel}: {run}");
        }
    }
}
