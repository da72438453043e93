"""Servers and a patch panel as network namespaces of this machine: what an exported script of routes is tried on.

``python optical_network.py panel PATCHES`` copies frames from transmitters to receivers, as patched; ``host`` answers
datagrams with how they came, and sends those that it is told to.
"""

import json
import os
import select
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

PORT = 5000
PACKET_OUTGOING, ETH_P_ALL, SO_NO_CHECK, IP_RECVTTL = 4, 3, 11, 12


def refusal():
    """Why there can be no namespaces here; None if there can."""
    if shutil.which("ip") is None or shutil.which("sysctl") is None:
        return "needs ip and sysctl"
    name = f"ddlopt-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"may not make network namespaces: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], check=False)
    return None


class Network:
    """Servers with interfaces that lead to a panel. ``patches``: (plane, transmitting server, receiving server)."""

    def __init__(self, servers, patches, duplex):
        self.prefix = f"ddlopt{os.getpid()}-"
        self.spaces = [self.prefix + str(server) for server in range(servers)]
        self.panel_space = self.prefix + "p"
        both = [*patches, *((plane, j, i) for plane, i, j in patches)] if duplex else patches
        self.patches = {(plane, i): j for plane, i, j in both}
        self.processes = []

    def __enter__(self):
        try:
            for space in [*self.spaces, self.panel_space]:
                run("ip", "netns", "add", space)
            ends = sorted({(plane, end) for (plane, i), j in self.patches.items() for end in (i, j)})
            for plane, server in ends:
                here, there = f"h{server}p{plane}", f"plane{plane}"
                words = ["type", "veth", "peer", "name", here, "netns", self.panel_space]
                run("ip", "link", "add", there, "netns", self.spaces[server], *words)
                run("ip", "-n", self.panel_space, "link", "set", here, "promisc", "on", "up")
            wires = {f"h{i}p{plane}": f"h{j}p{plane}" for (plane, i), j in self.patches.items()}
            self._start(self.panel_space, "panel", json.dumps(wires)).stdout.readline()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.communicate()
        for space in [*self.spaces, self.panel_space]:
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)

    def set_up(self, script, names):
        """Run the script on every server, and have each listen."""
        for space, name in zip(self.spaces, names, strict=True):
            run("ip", "netns", "exec", space, "bash", str(script), name)
        self.hosts = [self._start(space, "host") for space in self.spaces]
        for host in self.hosts:
            host.stdout.readline()

    def _start(self, space, *words):
        command = ["ip", "netns", "exec", space, sys.executable, "-I", str(Path(__file__).resolve()), *words]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def sent(self, server, address):
        """How a datagram to an address came: the hops that it took; None if no answer came back."""
        self.hosts[server].stdin.write(address + "\n")
        self.hosts[server].stdin.flush()
        return json.loads(self.hosts[server].stdout.readline())

    def traced(self, server, address):
        """Servers that the kernel's routes lead an address through, patch by patch."""
        found = [server]
        while len(found) <= len(self.spaces):
            told = json.loads(run("ip", "-j", "-n", self.spaces[found[-1]], "route", "get", address))[0]
            if told.get("type") == "local":
                return tuple(found)
            found.append(self.patches[int(told["dev"].removeprefix("plane")), found[-1]])
        return tuple(found)


def run(*words):
    """Standard output of a command that has to succeed."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def panel(wires):
    """Copy frames for ever."""
    sockets = {}
    for name in {*wires, *wires.values()}:
        sockets[name] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        sockets[name].bind((name, 0))
    out = {sockets[here].fileno(): sockets[there] for here, there in wires.items()}
    print("ready", flush=True)
    while True:
        for each in select.select(list(sockets.values()), [], [])[0]:
            frame, where = each.recvfrom(65535)
            if where[2] != PACKET_OUTGOING and each.fileno() in out:
                with suppress(OSError):
                    out[each.fileno()].send(frame)


def host():
    """Answer datagrams; send one for each line of standard input and print how it came to the other side."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
    listening.bind(("0.0.0.0", PORT))
    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for each in (listening, asking):
        each.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)  # the panel copies frames before sums are filled in
    asking.settimeout(3)
    print("ready", flush=True)
    while True:
        ready = select.select([listening, sys.stdin], [], [])[0]
        if listening in ready:
            _, extra, _, sender = listening.recvmsg(100, 100)
            ttl = next(int.from_bytes(data, sys.byteorder) for _, kind, data in extra if kind == socket.IP_TTL)
            listening.sendto(json.dumps(64 - ttl + 1).encode(), sender)
        if sys.stdin in ready:
            line = sys.stdin.readline()
            if not line:
                return
            try:
                asking.sendto(b"?", (line.strip(), PORT))
                print(asking.recvfrom(100)[0].decode(), flush=True)
            except OSError:
                print("null", flush=True)


if __name__ == "__main__":
    panel(json.loads(sys.argv[2])) if sys.argv[1] == "panel" else host()
