"""fat_tree.py: a FatTree of k = 4 out of network namespaces, as Fat-B+Tree uses it: one core switch,
four pods with an aggregation switch and two edge switches each, and hosts behind the edges that ask
for them. Every namespace but those of hosts routes as Linux does.

    host (P, E)  10.P.E.2 -- edge (P, E) -- aggregation P -- core
"""

import itertools

from xdp_namespaces import ETHTOOL_STXCSUM, Namespace

PODS, EDGES = 4, 2


class FatTree:
    def __init__(self, hosts):
        """`hosts`: the (pod, edge) that have one."""
        self.all = []
        self.links = itertools.count(1)
        try:
            self.build(hosts)
        except BaseException:
            self.end()
            raise

    def build(self, hosts):
        self.core = self.namespace()
        self.aggregations = [self.namespace() for _ in range(PODS)]
        self.edges = {(p, e): self.namespace() for p in range(PODS) for e in range(EDGES)}
        self.hosts = {place: self.namespace() for place in hosts}
        for p, aggregation in enumerate(self.aggregations):
            up, down = self.link(aggregation, "uplink", self.core, f"pod{p}")
            self.route(aggregation, "default", down, "uplink")
            self.route(self.core, f"10.{p}.0.0/16", up, f"pod{p}")
            for e in range(EDGES):
                up, down = self.link(self.edges[p, e], "uplink", aggregation, f"edge{e}")
                self.route(self.edges[p, e], "default", down, "uplink")
                self.route(aggregation, f"10.{p}.{e}.0/24", up, f"edge{e}")
        for (p, e), host in self.hosts.items():
            self.link(host, "uplink", self.edges[p, e], "host",
                      (f"10.{p}.{e}.2/24", f"10.{p}.{e}.1/24"))
            self.route(host, "default", f"10.{p}.{e}.1", "uplink")
            # Checksums are whole when packets leave, as a switch mends them.
            host.ethtool("uplink", ETHTOOL_STXCSUM, 0)

    def namespace(self):
        made = Namespace()
        self.all.append(made)
        made.run("sh", "-c", "ip link set lo up; echo 1 > /proc/sys/net/ipv4/ip_forward; "
                 "echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter; "
                 "echo 0 > /proc/sys/net/ipv4/conf/default/rp_filter")
        return made

    def link(self, one, one_name, other, other_name, addresses=None):
        """Joins two; their addresses."""
        number = next(self.links)
        addresses = addresses or (f"192.168.{number}.1/30", f"192.168.{number}.2/30")
        one.run("ip", "link", "add", one_name, "type", "veth", "peer", "name", other_name, "netns",
                str(other.holder.pid))
        for namespace, name, address in ((one, one_name, addresses[0]),
                                         (other, other_name, addresses[1])):
            namespace.run("sh", "-c", f"ip address add {address} dev {name}; ip link set dev {name} up")
        return tuple(address.split("/")[0] for address in addresses)

    def route(self, namespace, to, via, interface):
        namespace.run("ip", "route", "add", to, "via", via, "dev", interface)

    def interfaces(self, namespace):
        """Of a switch, those that lead to others."""
        if namespace is self.core:
            return [f"pod{p}" for p in range(PODS)]
        if namespace in self.aggregations:
            return ["uplink", *(f"edge{e}" for e in range(EDGES))]
        place = next(place for place, edge in self.edges.items() if edge is namespace)
        return ["uplink", "host"] if place in self.hosts else ["uplink"]

    def end(self):
        for namespace in self.all:
            namespace.end()
