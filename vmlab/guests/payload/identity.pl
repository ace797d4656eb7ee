# Makes a guest itself, in one process: under emulation every program that is started costs a twentieth of a second.
# Reads lines of key=value from standard input and prints "ok" when all is in place. It may run again at any time.
#
#   entropy         hex, mixed into the kernel's pool before anything else is done
#   clock           nanoseconds to step the wall clock by; 0 leaves it alone
#   grow            1: let the root file system fill its disk
#   hostname machine_id hosts (hex) address (CIDR) host_key (hex) authorized_key
#
# A key that is missing leaves its part out; a guest that is going to be saved has no address.
#
# It runs with -w, and without the modules warnings, constant, Socket and File::Glob (which glob loads): together they
# take a restored guest longer than all that is done here.
use strict;

sub RNDADDENTROPY() { 0x40085203 }
sub RNDRESEEDCRNG() { 0x5207 }
sub AF_INET() { 2 }
sub SOCK_DGRAM() { 2 }
sub SIOCSIFADDR() { 0x8916 }
sub SIOCSIFBRDADDR() { 0x891a }
sub SIOCSIFNETMASK() { 0x891c }
sub SIOCGIFFLAGS() { 0x8913 }
sub SIOCSIFFLAGS() { 0x8914 }
sub IFF_UP() { 0x1 }
sub SYS_CLOCK_ADJTIME() { 305 }
sub CLOCK_REALTIME() { 0 }
sub ADJ_SETOFFSET() { 0x100 }
sub ADJ_NANO() { 0x2000 }
sub SYS_UMOUNT2() { 166 }

my %given;
while (my $line = <STDIN>) {
    chomp $line;
    my ($key, $value) = split /=/, $line, 2;
    $given{$key} = $value;
}

sub fail { print STDERR "identity: @_\n"; exit 1 }

sub put {
    my ($path, $text, $mode) = @_;
    umask($mode == 0600 ? 077 : 022);
    open(my $file, '>', $path) or fail("cannot write $path: $!");
    print $file $text;
    close($file) or fail("cannot write $path: $!");
    chmod($mode, $path) if -f $path && $path !~ m{^/proc/};
}

sub reseed {
    my $bytes = pack('H*', $given{entropy});
    open(my $random, '+<', '/dev/random') or fail("/dev/random: $!");
    my $pool = pack('ii a*', 8 * length($bytes), length($bytes), $bytes);
    ioctl($random, RNDADDENTROPY, $pool) or fail("entropy is not taken: $!");
    ioctl($random, RNDRESEEDCRNG, 0) or fail("the generator does not reseed: $!");
}

# The kernel adds the step to its own clock, so that it does not matter when this program comes to run.
sub step_clock {
    my $nanoseconds = $given{clock} % 1_000_000_000;
    my $seconds = ($given{clock} - $nanoseconds) / 1_000_000_000;
    my $timex = pack('L x4 x64 q q x120', ADJ_SETOFFSET | ADJ_NANO, $seconds, $nanoseconds);
    syscall(SYS_CLOCK_ADJTIME, CLOCK_REALTIME, $timex) >= 0 or fail("the clock cannot be set: $!");
}

# Sectors are of 512 bytes, the file system's blocks of 4 KiB; their number is at byte 1028 of the disk.
sub grow {
    open(my $size, '<', '/sys/class/block/vda/size') or fail("no disk: $!");
    open(my $disk, '<:raw', '/dev/vda') or fail("no disk: $!");
    sysseek($disk, 1028, 0);
    sysread($disk, my $blocks, 4);
    return if int(<$size> / 8) <= unpack('L', $blocks);
    system('resize2fs /dev/vda >/dev/null 2>&1') == 0 or fail('the root file system could not grow');
}

sub set_names {
    put('/proc/sys/kernel/hostname', "$given{hostname}\n", 0644);
    put('/etc/hostname', "$given{hostname}\n", 0644);
    my $own = $given{address} ? ($given{address} =~ s{/.*}{}r) : '127.0.1.1';
    put('/etc/hosts', "127.0.0.1 localhost\n$own $given{hostname}\n" . pack('H*', $given{hosts} // ''), 0644);
    return unless $given{machine_id};
    # Where the root file system was not writable at boot, systemd has mounted a file over this one.
    my $path = '/etc/machine-id';
    syscall(SYS_UMOUNT2, $path, 0);
    put($path, "$given{machine_id}\n", 0644);
}

sub entries {
    my ($folder) = @_;
    opendir(my $open, $folder) or return ();
    return grep { !/^\./ } readdir($open);
}

sub network_card {
    for (1 .. 1000) {
        for my $card (entries('/sys/class/net')) {
            return $card if -e "/sys/class/net/$card/device";
        }
        select(undef, undef, undef, 0.01);
    }
    fail('no network card within 10 s');
}

sub internet_address { return pack('S x2 a4 x8', AF_INET, $_[0]) }

sub set_address {
    my ($address, $prefix) = split m{/}, $given{address};
    my $mask = pack('N', 0xffffffff << (32 - $prefix) & 0xffffffff);
    my $own = pack('C4', split /\./, $address);
    my $card = network_card();
    socket(my $socket, AF_INET, SOCK_DGRAM, 0) or fail("no socket: $!");
    for my $step ([SIOCSIFADDR, $own], [SIOCSIFNETMASK, $mask], [SIOCSIFBRDADDR, $own | ~$mask]) {
        my $request = pack('a16 a16 x8', $card, internet_address($step->[1]));
        ioctl($socket, $step->[0], $request) or fail("$card: cannot set $address: $!");
    }
    my $request = pack('a16 x24', $card);
    ioctl($socket, SIOCGIFFLAGS, $request) or fail("$card: $!");
    my $flags = unpack('x16 s', $request);
    $request = pack('a16 s x22', $card, $flags | IFF_UP);
    ioctl($socket, SIOCSIFFLAGS, $request) or fail("$card: cannot be brought up: $!");
}

sub set_keys {
    put('/etc/ssh/ssh_host_ed25519_key', pack('H*', $given{host_key}), 0600);
    put('/etc/ssh/authorized_keys', "$given{authorized_key}\n", 0600);
    unlink('/etc/ssh/ssh_host_ed25519_key.pub');
}

# The servers of a saved guest already run. sshd reads its keys anew for each connection, and journald goes on with the
# files that it holds open; under the guest's own machine-id readers find them.
sub take_over_journal {
    my $journals = '/run/log/journal';
    my ($former) = entries($journals);
    my $own = "$journals/$given{machine_id}";
    return if !defined $former || -d $own;
    rename("$journals/$former", $own) or fail("$journals/$former: $!");
}

sub sshd_runs {
    open(my $file, '<', '/run/sshd.pid') or return 0;
    return kill(0, <$file> + 0);
}

sub start_sshd {
    return if sshd_runs();
    system('systemctl', 'start', 'ssh.service') == 0 or fail('sshd did not start');
}

reseed() if $given{entropy};
step_clock() if $given{clock};
grow() if $given{grow};
set_names() if $given{hostname};
take_over_journal() if $given{machine_id};
set_keys() if $given{host_key};
set_address() if $given{address};
start_sshd() if $given{host_key};
print "ok\n";
