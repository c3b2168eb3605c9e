# sock_lwp.pl …: as sock_python.py, by Perl's LWP.
use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use LWP::UserAgent;

my %options = (timeout => 20);
my @rest;
while (@ARGV) {
    my $word = shift @ARGV;
    if    ($word eq '--timeout')   { $options{timeout} = shift @ARGV }
    elsif ($word =~ /^--(.+)/)     { $options{$1}      = 1 }
    else                           { push @rest, $word }
}
$| = 1;
my $keeping = LWP::UserAgent->new(timeout => $options{timeout}, keep_alive => 4);

sub call {
    my ($url, $model, $stream, $close) = @_;
    my $agent = $close ? LWP::UserAgent->new(timeout => $options{timeout}) : $keeping;
    my $body  = '';
    my @how   = $stream ? (':content_cb' => sub { $body .= $_[0] }) : ();
    my $answer = $agent->post($url, 'Content-Type' => 'application/json', @how,
        Content => qq({"model": "$model", "messages": []}));
    if (($answer->header('Client-Warning') || '') eq 'Internal response') {
        my $text = $answer->status_line;
        my $kind = $text =~ /refused/ ? 'refused' : $text =~ /timeout|timed out/ ? 'timeout' : "other:$text";
        $kind =~ s/\s+/_/g;
        print "error $kind\n";
        return;
    }
    $body = $answer->content if !length $body;    # LWP gives an error's body to no callback
    printf "status %d %s %s\n", $answer->code, ($body =~ /circuit_open/ ? 'circuit_open' : '-'),
        substr(sha256_hex($body), 0, 16);
}

if ($rest[0] eq '-') {
    while (my $line = <STDIN>) {
        my ($url, $model, @how) = split ' ', $line;
        call($url, $model, (grep { $_ eq 'stream' } @how) ? 1 : 0, (grep { $_ eq 'close' } @how) ? 1 : 0);
    }
}
else {
    call($rest[0], $rest[2] || 'm', $options{stream}, $options{close}) for 1 .. $rest[1] || 1;
}
