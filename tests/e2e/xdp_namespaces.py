"""xdp_namespaces.py: two networks of our own, joined by a pair of interfaces, for tests as root.

Neither has a name: each is a process's, and gone with it, however the test ends.
"""

import ctypes
import fcntl
import os
import shutil
import socket
import struct
import subprocess

from skep_process import LIBC, PATIENCE_S, end_with_parent

SERVER, CLIENT = "10.77.0.1", "10.77.0.2"
INTERFACE = "skep-server"
CLONE_NEWNET = 0x40000000
SIOCETHTOOL, ETHTOOL_STXCSUM = 0x8946, 0x17


def why_not():
    """Why this machine cannot run such tests; None if it can."""
    if os.geteuid() != 0:
        return "needs root: network namespaces, and a program in a driver's hook"
    if not shutil.which("ip"):
        return "iproute2 is not installed"
    if subprocess.run(["unshare", "-n", "true"], check=False, capture_output=True).returncode != 0:
        return "the system allows no network namespaces"
    return None


class Namespace:
    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; exec sleep infinity"],
                                       stdout=subprocess.PIPE, preexec_fn=end_with_parent)
        self.holder.stdout.readline()
        self.path = f"/proc/{self.holder.pid}/ns/net"

    def command(self, *words):
        return ["nsenter", f"--net={self.path}", *words]

    def run(self, *words):
        subprocess.run(self.command(*words), check=True, timeout=PATIENCE_S)

    def udp_socket(self, peer=None):
        """A socket of this network, connected if there is a peer: a socket stays in the network where
        it was made."""
        home, there = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(self.path, os.O_RDONLY)
        try:
            enter(there)
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            if peer:
                made.connect(peer)
            return made
        finally:
            enter(home)
            os.close(home)
            os.close(there)

    def ethtool(self, interface, setting, value):
        with self.udp_socket(("127.0.0.1", 1)) as any_socket:
            argument = ctypes.create_string_buffer(struct.pack("II", setting, value))
            request = struct.pack("16sP", interface.encode(), ctypes.addressof(argument))
            fcntl.ioctl(any_socket, SIOCETHTOOL, request)

    def end(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()


def enter(namespace):
    if LIBC.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError("setns")


class Networks:
    """The server's, with INTERFACE, and the client's."""

    def __init__(self):
        self.server, self.client = Namespace(), Namespace()
        self.server.run("ip", "link", "add", INTERFACE, "type", "veth", "peer", "name", "client",
                        "netns", str(self.client.holder.pid))
        for namespace, name, address in ((self.server, INTERFACE, SERVER),
                                         (self.client, "client", CLIENT)):
            namespace.run("ip", "address", "add", f"{address}/24", "dev", name)
            namespace.run("ip", "link", "set", "lo", "up")
            namespace.run("ip", "link", "set", name, "up")

    def end(self):
        self.server.end()
        self.client.end()
