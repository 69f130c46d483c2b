"""The tables of fat_btree.p4 from a bank of src/netindex/switch (switch_tables.h).

A bank is what switch_vectors.cc prints of a switch:

    {"duties": 1 first, 2 last, "service": IPv4 as a number, "port": 6379,
     "servers": [{"address": IPv4 as a number, "rkey": 1}, ...],
     "ranges": [{"address": .., "server": 0}, ...],
     "stages": [[{"table": 0, "low": 0, "high": 65535, "is_table": true, "result": 0}, ...] x 4], or []
     "layers": [[{"address": .., "pivots": [16 of them, the first 0], "children": [16 of them]}, ...] x 3]}
"""

LAYERS = ("Ingress.layer_1", "Ingress.layer_2", "Egress.layer_3")
BRANCHES = 16
FIRST, LAST = 1, 2


def halves(number):
    return {"high": number >> 32, "low": number & 0xffffffff}


def of_address(address):
    return {f"address_{half}": value for half, value in halves(address).items()}


def config_of(bank, port=1):
    """What runtime.load takes: the bank's tables; every packet leaves by `port`."""
    tables = {"Ingress.place": {"default_action": {"action": "Ingress.be", "parameters": {
        "is_first": int(bank["duties"] & FIRST != 0), "is_last": int(bank["duties"] & LAST != 0),
        "service": bank["service"], "port": bank["port"]}}}}
    for name in ("Ingress.route", "Ingress.bridge"):
        tables[name] = {"default_action": {"action": "Ingress.send", "parameters": {"port": port}}}
    tables["Ingress.servers"] = {"entries": [
        {"match": {"server": i}, "action": "Ingress.at", "parameters": server}
        for i, server in enumerate(bank["servers"] or [])]}
    add_root(tables, bank)
    for name, nodes in zip(LAYERS, bank["layers"]):
        add_layer(tables, name, nodes)
    return {"tables": tables}


def add_root(tables, bank):
    for stage, entries in enumerate(bank["stages"], 1):
        tables[f"Ingress.root.stage_{stage}"] = {"entries": [stage_entry(stage, entry) for entry in entries]}
    tables["Ingress.root.ranges"] = {"entries": [
        {"match": {"range": i}, "action": "Ingress.root.to_node",
         "parameters": {**halves(leads["address"]), "of": leads["server"]}}
        for i, leads in enumerate(bank["ranges"])]}


def stage_entry(stage, entry):
    match = {"chunk": [entry["low"], entry["high"]]} | ({"table": entry["table"]} if stage > 1 else {})
    action = "to_table" if entry["is_table"] else "to_range"
    return {"match": match, "priority": 1, "action": f"Ingress.root.{action}",
            "parameters": {"number": entry["result"]}}


def add_layer(tables, name, nodes):
    for i in range(2, BRANCHES + 1):
        pivot = f"{name}.pivot_{i}"
        tables[f"{pivot}.get_pivot"] = {"entries": [
            {"match": of_address(node["address"]), "action": f"{pivot}.compare",
             "parameters": halves(node["pivots"][i - 1])} for node in nodes]}
    tables[f"{name}.get_child"] = {"entries": [
        {"match": of_address(node["address"]) | results(child), "action": f"{name}.to_child",
         "parameters": halves(node["children"][child])} for node in nodes for child in range(BRANCHES)]}


def results(ones):
    """The results of the comparisons if so many pivots are below the key."""
    return {f"above_{i}": int(i < ones + 2) for i in range(2, BRANCHES + 1)}
