# SPDX-License-Identifier: MIT OR Apache-2.0
# Workloads whose bytes are known, each in a cgroup of its own, while recorders trace. Prints `truth NAME FIELD NUMBER`
# for the test, and recordings as JSON. FILES: how many files are kept, and as many created and removed; REMOVED: how
# many more are created and removed, 0 for neither of them.
group() { mkdir -p /sys/fs/cgroup/$1; echo $BASHPID > /sys/fs/cgroup/$1/cgroup.procs; }
say() { echo "truth $*"; }
# A program in a cgroup.
run() { (group $1; say $1 pid $BASHPID; shift; exec "$@" 2> /dev/null); }
# Starts a recorder that is attached when this ends.
recorder() {
    local file=$1; shift
    floodline record --trace on --every 1s -o $file "$@" 2> /tmp/record.err & recorder=$!
    until [ "$(floodline replay $file 2> /dev/null | wc -l)" -ge 2 ]; do
        sleep 0.2; kill -0 $recorder || { cat /tmp/record.err; exit 9; }
    done
}
stopped() { kill -INT $recorder; wait $recorder; }
create() { mkdir $1; n=0; while [ $n -lt $2 ]; do echo > $1/$n; n=$((n + 1)); done; }
# Makes memory of a kind and writes it past the cache, or into a mapped file. No program of a distribution does.
past_the_cache='
my ($kind, $blocks, $path) = @ARGV;
my $size = $blocks * 4096;
my $flags = { anonymous => 0x22, shared => 0x21, mapped => 0x01, stored => 0x01 }->{$kind};
sysopen(my $zero, "/dev/zero", 0) or die;
my ($number, $file) = (-1);
if ($flags == 1) {
    sysopen($file, $kind eq "stored" ? $path : "$path-memory", 0x42) or die;
    truncate($file, $size) or die;
    $number = fileno($file);
}
my $address = syscall(9, 0, $size, 3, $flags, $number, 0);
die if $address == -1 or syscall(0, fileno($zero), $address, $size) != $size;
exit(syscall(26, $address, $size, 4) ? 1 : 0) if $kind eq "stored";
sysopen(my $out, $path, 0x4041) or die;
syscall(1, fileno($out), $address, $size) == $size or die;'

cd /data; sync
recorder /tmp/truth.flr --trace-budget 10000
run sequential dd if=/dev/zero of=sequential bs=4096 count=1009 conv=fsync
run large dd if=/dev/zero of=large bs=1M count=17 conv=fsync
(group small; say small pid $BASHPID; for n in {1..499}; do printf %4095s x > small$n; done; sync -f .; :)
run xfs dd if=/dev/zero of=/xfs/xfs bs=4096 count=1013 conv=fsync
if [ -d /btrfs ]; then
    run btrfs dd if=/dev/zero of=/btrfs/btrfs bs=4096 count=1019 conv=fsync
    run compressed dd if=/dev/zero of=/packed/packed bs=4096 count=1021 conv=fsync
fi
run journalled dd if=/dev/zero of=/journal/journalled bs=4096 count=1031 conv=fsync
run loop dd if=/dev/zero of=/image/inside bs=4096 count=1033 conv=fsync; sync -f .
run overlay dd if=/dev/zero of=/overlay/overlay bs=4096 count=1039 conv=fsync
run dropped dd if=/dev/zero of=dropped bs=4096 count=1049; rm dropped
run truncated dd if=/dev/zero of=truncated bs=4096 count=1051
run rewritten dd if=/dev/zero of=truncated bs=4096 count=1061 conv=fsync
run first dd if=/dev/zero of=shared bs=4096 count=509
run second dd if=/dev/zero of=shared bs=4096 count=521 seek=509 conv=notrunc,fsync
run renamed dd if=/dev/zero of=older bs=4096 count=1063; mv older newer; sync newer
run direct dd if=/dev/zero of=direct bs=64k count=101 oflag=direct
run anonymous perl -e "$past_the_cache" anonymous 1009 /data/anonymous
run shared perl -e "$past_the_cache" shared 1013 /data/shared-memory
run mapped perl -e "$past_the_cache" mapped 1019 /data/mapped
run stored perl -e "$past_the_cache" stored 2039 /data/stored
# As the kernel lets it: the disk is slow and little may be dirty.
limits=$(cat /proc/sys/vm/dirty_background_ratio /proc/sys/vm/dirty_ratio)
echo 2097152 > /proc/sys/vm/dirty_background_bytes; echo 8388608 > /proc/sys/vm/dirty_bytes
begin=$(date +%s%N); run paused dd if=/dev/zero of=/slow/paused bs=64k count=509; say paused wall_ns $(($(date +%s%N) - begin))
set -- $limits; echo $1 > /proc/sys/vm/dirty_background_ratio; echo $2 > /proc/sys/vm/dirty_ratio
if [ $REMOVED -gt 0 ]; then
    (group batch; say batch pid $BASHPID; create batch 10007; sync -f .; :)
    (group kept; say kept pid $BASHPID; create kept $FILES) &
    (group gone; say gone pid $BASHPID; create gone $FILES; exec rm -r gone) &
    wait %2 %3 2> /dev/null; sync -f .
fi
sync; sleep 2
for name in /sys/fs/cgroup/*/; do
    name=$(basename $name); charged=0
    for word in $(cat /sys/fs/cgroup/$name/io.stat); do case $word in wbytes=*) charged=$((charged + ${word#wbytes=})); esac; done
    say $name charged $charged
done
stopped
floodline ledger /tmp/truth.flr --format json
floodline export /tmp/truth.flr --format jsonl | grep '"event":"throttled"'

# What follows takes too long for every run of the tests.
[ $REMOVED -gt 0 ] || exit 0

# Children that live shortly, in trees: 77 times 1,000,003 bytes.
recorder /tmp/tree.flr --trace-budget 10000
for a in {1..7}; do (for b in {1..11}; do head -c 1000003 /dev/zero > tree$b; done; :); done
sleep 2; stopped
floodline ledger /tmp/tree.flr --format json

# With the budget that everybody has, more files than there is room for.
recorder /tmp/removed.flr
run removed bash -c "$(declare -f create); create removed $REMOVED; rm -r removed"
say recorder hwm_kib $(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' /proc/$recorder/status)
stopped
floodline ledger /tmp/removed.flr --format json
