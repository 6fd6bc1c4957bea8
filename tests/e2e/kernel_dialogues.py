# SPDX-License-Identifier: BSD-2-Clause
"""The exchanges of tests/rxevm/vgold.c between Verbena and the kernel's soft-RoCE in the guest, and
what must come of them: completions, QP states and events, every byte, the packets themselves."""

import itertools
import os
import re

import e2e
import rc_wire
from e2e import demand
from guest import Guest

GOLDEN = os.path.join(e2e.ROOT, "tests", "golden", "rxe")
VGOLD = os.path.join(e2e.BUILD, "tests", "rxevm", "vgold")
IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR, NO_EVENT = 2, 3, -1
IBV_QPS_RTS, IBV_QPS_ERR = 3, 6
IBV_WC_LOC_QP_OP_ERR, IBV_WC_REM_OP_ERR = 2, 11

# Counters that say a packet was taken for something it is not. None may be counted, whatever odd
# properties rxe's packets have (random IPv4 identification, UDP checksum 0, MigReq 0).
BAD_COUNTERS = re.compile(
    r"^(udp_rx_drop_\w+|rx_icrc_encapsulated|rx_drop_(?:malformed|peer|pkey|service)"
    r"|req_ghost_acks) (\d+)",
    re.MULTILINE,
)

# Scenario, its reference capture, options. All end well and look as they do between two rxe.
PLAIN = [
    ("rc-send", "rc-send", []),
    ("rc-write", "rc-write", []),
    ("rc-read", "rc-read", []),
    ("rc-atomic", "rc-atomic", []),
    ("rc-sendinv", "rc-sendinv", []),
    ("rc-burst", "rc-burst", []),
    ("rc-mixed", "rc-mixed", []),
    ("rc-send", "rc-psnwrap", ["-P", "0xfffffd"]),
    ("rc-send", "rc-send-mtu256", ["-m", "256"]),
    ("rc-write", "rc-write-mtu512", ["-m", "512"]),
    ("rc-write", "rc-write-mtu2048", ["-m", "2048"]),
    ("rc-send", "rc-send-mtu4096", ["-m", "4096"]),
    ("rc-read", "rc-read-mtu4096", ["-m", "4096"]),
    ("rc-rnr", "rc-rnr", ["-n", "28"]),
]
COALESCED = ("rc-burst", "rc-mixed")  # a responder need not answer each request with an ACK
REPEATED = ("rc-rnr",)

# Name, scenario, which packet counted from the first request, who sends it. The first copy is lost.
LOST = [
    ("request", "rc-send", 4, "requester"),
    ("tail", "rc-send", 9, "requester"),
    ("ack", "rc-send", 6, "responder"),
    ("readreq", "rc-read", 3, "requester"),
    ("readresp", "rc-read", 5, "responder"),
    ("atomicack", "rc-atomic", 0, "responder"),
]
FAULTY = ("rc-send", "rc-write", "rc-read", "rc-atomic", "rc-mixed", "rc-burst")
# The lanes lose packets by PSN, so their PSNs differ.
FIRST_PSN = {"client": 0x100, "server": 0x500100}
SINK = "sink0"  # in the guest: takes packets without an error for their sender


class Play:
    """What every exchange shares."""

    def __init__(self, guest, folder):
        self.guest = guest
        self.folder = folder
        self.gids = guest.our_gids(Guest.DEVICE)
        self.ports = itertools.count(18601)

    def vgold(self, we_are, scenario, *options, device=Guest.DEVICE, gids=None, **more):
        """One exchange: our output, the path of the capture, the counters.

        gids: index on our and on the guest's side. more: our_options, their_options, env.
        """
        port = next(self.ports)
        mine, theirs = gids or (self.gids[Guest.OUR_V4], Guest.GUEST_GID_V4)
        pcap = os.path.join(self.folder, f"{port}.pcap")
        stats = os.path.join(self.folder, f"{port}.stats")
        env = {"VERBENA_PCAP": pcap, "VERBENA_STATS": stats, **more.get("env", {})}
        words = ["-p", str(port), *options]
        ours = [VGOLD, "-d", device, "-g", str(mine), *words, *more.get("our_options", []), scenario]
        told = ["/mnt/vgold", "-g", str(theirs), *words, *more.get("their_options", []), scenario]
        status, text, other, their_text = self.guest.pair(we_are, ours, " ".join(told), port, env)
        both = f"--- we printed\n{text}\n--- the guest printed\n{their_text}"
        demand(status == 0 and other == 0, f"exit codes {status}, {other}\n{both}")
        if "skip:" in text + their_text:
            raise e2e.Skip("no memory windows")
        with open(stats, encoding="ascii") as file:
            counters = file.read()
        wrong = BAD_COUNTERS.findall(counters)
        demand(not wrong, f"counted: {wrong}\n{both}")
        return text, pcap, counters


def golden(name):
    return os.path.join(GOLDEN, name + ".pcap")


def exchange(play, we_are, name, scenario, *options, **more):
    """Nothing goes wrong, and the packets are those of the reference."""
    _, pcap, counters = play.vgold(we_are, scenario, *options, **more)
    if "gids" not in more:  # IPv4: the packets had identifications that we could not foresee
        demand("udp_rx_foreign_id" in counters, f"no packet of rxe?\n{counters}")
    rc_wire.compare(pcap, golden(name), name in COALESCED, name in REPEATED)


def rnr_burst(play, we_are):
    """Behind a refused message more are under way; rxe adds a sequence NAK for them."""
    play.vgold(we_are, "rc-rnr-burst", "-n", "28")


def refused(play, we_are, scenario, event):
    """The responder refuses a request and says why; both QPs are in ERR then."""
    text, pcap, _ = play.vgold(we_are, scenario)
    states = re.findall(r"qp: state (\d+) event (-?\d+)", text)
    want = [(str(IBV_QPS_ERR), str(event if we_are == "server" else NO_EVENT))]
    demand(states == want, f"QP state and event {states}, not {want}\n{text}")
    rc_wire.compare_responses(pcap, golden(scenario))


def too_long(play, we_are):
    """A SEND longer than the receive.

    rxe as responder says "remote operational error" and completes its receive with "local QP
    operation error"; the specification has "invalid request" and "local length error".
    """
    departs = we_are == "client"
    text, pcap, _ = play.vgold(
        we_are,
        "rc-toolong",
        our_options=["-e", str(IBV_WC_REM_OP_ERR)] if departs else [],
        their_options=["-e", str(IBV_WC_LOC_QP_OP_ERR)] if departs else [],
    )
    event = NO_EVENT if departs else IBV_EVENT_QP_REQ_ERR
    demand(f"qp: state {IBV_QPS_ERR} event {event}\n" in text, f"QP state or event:\n{text}")
    answers = rc_wire.streams(pcap)[1]
    nak = "NAK 3" if departs else "NAK 1"
    demand(len(answers) == 1 and nak in answers[0], f"responses {answers}")


def exceeded(play, we_are, scenario, *options):
    """The requester gives up; a responder knows nothing of it."""
    text, _, _ = play.vgold(we_are, scenario, *options)
    states = re.findall(r"qp: state (\d+) event (-?\d+)", text)
    want = [(str(IBV_QPS_ERR if we_are == "client" else IBV_QPS_RTS), str(NO_EVENT))]
    want = [] if scenario == "rc-noqp" and we_are == "server" else want
    demand(states == want, f"QP state and event {states}, not {want}\n{text}")


def prepare_loss(guest):
    guest.run(
        f"modprobe dummy && ip link add {SINK} type dummy && ip link set {SINK} up"
        " && tc qdisc add dev eth0 clsact"
    )


def lost(play, we_are, scenario, nth, sender, refused_by_driver=False):
    """The first copy of one packet never arrives, nor any third, fifth, ...

    refused_by_driver: the guest's own queue refuses it, and rxe knows.
    """
    from_guest = (sender == "responder") == (we_are == "client")
    direction = "egress" if from_guest else "ingress"
    action = "action drop random determ pass 2"
    if from_guest and not refused_by_driver:
        action = f"action pipe random determ pass 2 action mirred egress redirect dev {SINK}"
    first = FIRST_PSN[we_are]
    where = f"dev eth0 {direction} pref {1 + (we_are == 'client')}"
    match = f"u32 match ip protocol 17 0xff match u32 0x{first + nth:08x} 0x00ffffff at 36"
    play.guest.run(f"tc filter add {where} protocol ip {match} {action}", we_are)
    try:
        play.vgold(we_are, scenario, "-t", "16", "-P", hex(first))
    finally:
        told = play.guest.run(f"tc -s filter show {where}; tc filter del {where}", we_are)
    demand(re.search(r"Sent [1-9]\d* bytes", told), f"nothing was lost:\n{told}")


def faulty(play, we_are, scenario, seed):
    """Our side loses, repeats and reorders much of what it sends."""
    spec = f"drop=15%,dup=10%,reorder=10%:2ms,seed={seed}"
    play.vgold(we_are, scenario, "-t", "15", env={"VERBENA_FAULT": spec})


def vlan(play, we_are):
    """VLAN 100: devices and addresses of their own on both sides."""
    gids = play.guest.vlan(100)
    exchange(play, we_are, "rc-send-vlan", "rc-send", device=Guest.DEVICE + ".100", gids=gids)


def cases(run, play, we_are):
    """run(name, function, ...) is called for every exchange, with us as client or as server."""
    both = (play, we_are)
    for scenario, name, options in PLAIN:
        run(name, exchange, *both, name, scenario, *options)
    v6 = (play.gids["fd88::1"], Guest.GUEST_GID_V6)
    for scenario in ("rc-send", "rc-read"):
        run(scenario + "-ipv6", exchange, *both, scenario + "-ipv6", scenario, gids=v6)
    run("rc-rnr-burst", rnr_burst, *both)
    for scenario in ("rc-badrkey-write", "rc-badrkey-read", "rc-badrkey-atomic", "rc-beyond"):
        run(scenario, refused, *both, scenario, IBV_EVENT_QP_ACCESS_ERR)
    run("rc-noaccess", refused, *both, "rc-noaccess", IBV_EVENT_QP_REQ_ERR)
    run("rc-toolong", too_long, *both)
    run("rc-rnr-exceeded", exceeded, *both, "rc-rnr-exceeded", "-R", "2", "-n", "20")
    run("rc-noqp", exceeded, *both, "rc-noqp", "-t", "14", "-r", "2")
    for name, *which in LOST:
        run(f"rc-loss-{name}", lost, *both, *which)
    if we_are == "client" and e2e.LONG:
        # Not in every run: now and then the READ never ends, and it is open which side waits.
        run("rc-readresp-txfail", lost, *both, "rc-read", 5, "responder", True)
    if we_are == "server":
        run("rc-request-txfail", lost, *both, "rc-send", 4, "requester", True)
    for seed, scenario in enumerate(FAULTY):
        run(f"{scenario}_faulty", faulty, *both, scenario, seed)
