// fat_btree.p4: the switch of src/netindex/switch as a program for an ASIC (P4-16, v1model).
//
// What a switch does with a packet stands in switch_packet.h: GETs of the packed protocol get the
// hint of their node and go to the server of their key; READs of memory (RoCEv2) with rkey 0 get
// the address of their node. What its tables hold stands in switch_tables.h. A packet leaves this
// program with the same bytes as it leaves the functions there; docs/p4.md says what is compared,
// and how to fill the tables.
//
//   ingress   place        the duties of this switch, and where queries go to
//             root         the fat root: four stages of 16-bit ranges, then the range
//             servers      where the range's server is
//             layer_1, 2   the node of the address, in which 15 pivots are compared side by side
//             route        the port to the destination
//   egress    layer_3      likewise
//                          then the packet is written, and its checksums mended by difference
//
// One program is all switches: of one without the fat root, say, the root's tables are empty. What
// has no entry changes nothing. The look-ups depend on the key and the address alone, so they are
// made before it is known whether the packet is a query at all; only what is written depends on
// that (meta.kind). So the stages of a switch suffice (budget.py counts them).
//
// Arithmetic is of 32 bits at most: a key or an address is two halves. Pivot 1 of a node is 0 and
// neither stored nor compared: if no pivot is below the key, that leads to child 1.
//
// A key of less than 8 bytes is a word, a half word and a byte, of which it has some. A frame that
// ends before its IP packet does is passed as it is.

#include <core.p4>
#include <v1model.p4>

typedef bit<9> port_t;

const bit<16> kTypeIpv4 = 0x0800;
const bit<8> kProtocolUdp = 17;
const bit<16> kRocePort = 4791;
const bit<8> kReadRequest = 0x0c;
const bit<32> kMagic = 0xd5534b50;
const bit<16> kUdpBytesOfRead = 40;
const bit<16> kTemporaryBytes = 20;
const bit<16> kIpBytes = 20;

// meta.kind
const bit<2> kNone = 0;
const bit<2> kGet = 1;
const bit<2> kBareRead = 2;     // without a temporary header
const bit<2> kReadOnItsWay = 3;

// CRC-32 of 40 zeros: a CRC with inverted ends, of the bytes that change, is that of the change
// alone, exclusive or this.
const bit<32> kCrcOfZeros = 0xe9ec3db1;

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

header ipv4_t {
    bit<8> version_and_words;
    bit<8> service;
    bit<16> bytes;
    bit<16> identification;
    bit<16> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> check;
    bit<32> source;
    bit<32> destination;
}

header udp_t {
    bit<16> source;
    bit<16> destination;
    bit<16> bytes;
    bit<16> check;
}

// A datagram of the packed protocol up to the key. What is little-endian there, and looked at or
// written here, is in parts: low before high.
header get_t {
    bit<32> magic;
    bit<8> version;
    bit<8> why;
    bit<16> answer_bytes;
    bit<64> client;
    bit<64> instance;
    bit<8> payload_bytes;
    bit<24> payload_bytes_high;
    bit<32> id;
    bit<8> kind;
    bit<8> flags;
    bit<16> keyspace;
    bit<32> count;
    bit<8> operation;
    bit<8> fields;
    bit<32> hint_low;   // the lowest byte first
    bit<32> hint_high;  // likewise
    bit<8> key_bytes;
}

header key_t {
    bit<32> high;
    bit<32> low;
}

header word_t { bit<32> value; }
header half_t { bit<16> value; }
header byte_t { bit<8> value; }

header bth_t {
    bit<8> opcode;
    bit<8> flags;
    bit<16> partition;
    bit<32> queue_pair;
    bit<32> psn;
}

header reth_t {
    bit<32> va_high;
    bit<32> va_low;
    bit<32> rkey;
    bit<32> bytes;
}

header icrc_t { bit<32> value; }  // the lowest byte first

header temporary_t {
    bit<32> key_high;
    bit<32> key_low;
    bit<32> address_high;
    bit<32> address_low;
    bit<16> server;
    bit<16> zero;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ip;
    udp_t udp;
    get_t get;
    key_t key;
    word_t key_word;
    half_t key_half;
    byte_t key_byte;
    bth_t bth;
    reth_t reth;
    icrc_t icrc;
    temporary_t temporary;
}

struct metadata_t {
    bit<2> kind;
    bit<32> key_high;
    bit<32> key_low;
    bit<32> address_high;
    bit<32> address_low;
    bit<16> server;
    bit<1> descends;      // the address may be that of a node of the switches
    // Of this switch.
    bit<1> is_first;
    bit<1> is_last;
    bit<32> service;
    bit<16> port;
    // Of the server.
    bit<32> server_address;
    bit<32> rkey;
    // Lengths, less those that they must be.
    bit<16> ip_excess;
    bit<16> udp_excess;
    bit<8> payload_excess;
    bit<16> port_excess;
    // For checksums: what was there, inverted, and what changes.
    bit<1> ip_changes;
    bit<16> not_ip_check;
    bit<16> not_ip_bytes;
    bit<32> not_destination;
    bit<16> not_udp_check;
    bit<32> not_hint_low;
    bit<32> not_hint_high;
    bit<32> destination_changes;
    bit<32> va_high_changes;
    bit<32> va_low_changes;
    bit<32> rkey_changes;
}

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            kTypeIpv4: ip;
            default: accept;
        }
    }
    state ip {
        packet.extract(hdr.ip);
        transition select(hdr.ip.version_and_words, hdr.ip.protocol, hdr.ip.fragment) {
            (0x45, kProtocolUdp, 0 &&& 0x3fff): udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.destination, packet.lookahead<bit<32>>()) {
            (kRocePort, _): bth;
            (_, kMagic): get;
            default: accept;
        }
    }

    state get {
        packet.extract(hdr.get);
        transition select(hdr.get.version, hdr.get.why, hdr.get.payload_bytes_high, hdr.get.kind,
                          hdr.get.flags, hdr.get.keyspace, hdr.get.count, hdr.get.operation,
                          hdr.get.fields) {
            (1, 0, 0, 1, 0 &&& 0x30, 0, 0x01000000, 0x80, 0x10): key;
            default: accept;
        }
    }
    state key {
        meta.address_high = hdr.get.hint_high[7:0] ++ hdr.get.hint_high[15:8]
                            ++ hdr.get.hint_high[23:16] ++ hdr.get.hint_high[31:24];
        meta.address_low = hdr.get.hint_low[7:0] ++ hdr.get.hint_low[15:8]
                           ++ hdr.get.hint_low[23:16] ++ hdr.get.hint_low[31:24];
        transition select(hdr.get.key_bytes) {
            1: key_1;
            2: key_2;
            3: key_3;
            4: key_4;
            5: key_5;
            6: key_6;
            7: key_7;
            8 .. 127: key_8;
            default: accept;
        }
    }
    state key_1 {
        packet.extract(hdr.key_byte);
        meta.key_high = hdr.key_byte.value ++ 24w0;
        transition key_is_read;
    }
    state key_2 {
        packet.extract(hdr.key_half);
        meta.key_high = hdr.key_half.value ++ 16w0;
        transition key_is_read;
    }
    state key_3 {
        packet.extract(hdr.key_half);
        packet.extract(hdr.key_byte);
        meta.key_high = hdr.key_half.value ++ hdr.key_byte.value ++ 8w0;
        transition key_is_read;
    }
    state key_4 {
        packet.extract(hdr.key_word);
        meta.key_high = hdr.key_word.value;
        transition key_is_read;
    }
    state key_5 {
        packet.extract(hdr.key_word);
        packet.extract(hdr.key_byte);
        meta.key_high = hdr.key_word.value;
        meta.key_low = hdr.key_byte.value ++ 24w0;
        transition key_is_read;
    }
    state key_6 {
        packet.extract(hdr.key_word);
        packet.extract(hdr.key_half);
        meta.key_high = hdr.key_word.value;
        meta.key_low = hdr.key_half.value ++ 16w0;
        transition key_is_read;
    }
    state key_7 {
        packet.extract(hdr.key_word);
        packet.extract(hdr.key_half);
        packet.extract(hdr.key_byte);
        meta.key_high = hdr.key_word.value;
        meta.key_low = hdr.key_half.value ++ hdr.key_byte.value ++ 8w0;
        transition key_is_read;
    }
    state key_8 {
        packet.extract(hdr.key);
        meta.key_high = hdr.key.high;
        meta.key_low = hdr.key.low;
        transition key_is_read;
    }
    state key_is_read {
        meta.kind = kGet;
        transition accept;
    }

    state bth {
        packet.extract(hdr.bth);
        packet.extract(hdr.reth);
        packet.extract(hdr.icrc);
        transition select(hdr.bth.opcode, hdr.reth.rkey, hdr.udp.bytes) {
            (kReadRequest, 0, kUdpBytesOfRead): bare_read;
            (kReadRequest, 0, kUdpBytesOfRead + kTemporaryBytes): temporary;
            default: accept;
        }
    }
    state bare_read {
        meta.key_high = hdr.reth.va_high;
        meta.key_low = hdr.reth.va_low;
        meta.kind = kBareRead;
        transition accept;
    }
    state temporary {
        packet.extract(hdr.temporary);
        meta.key_high = hdr.temporary.key_high;
        meta.key_low = hdr.temporary.key_low;
        meta.address_high = hdr.temporary.address_high;
        meta.address_low = hdr.temporary.address_low;
        meta.server = hdr.temporary.server;
        meta.kind = kReadOnItsWay;
        transition accept;
    }
}

control VerifyChecksums(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

// The fat root: the range of a key, and where it leads to. Each stage looks at 16 bits of the key
// in the table that the stage before has named; stage 1 has one table, 0.
control Root(in bit<32> key_high, in bit<32> key_low, inout bit<32> address_high,
             inout bit<32> address_low, inout bit<16> server) {
    bit<16> inner = 0;    // table of the next stage
    bit<1> is_found = 0;  // the range is known, and no further stage is looked at
    bit<16> range = 0;

    action to_range(bit<16> number) {
        range = number;
        is_found = 1;
    }
    action to_table(bit<16> number) {
        inner = number;
    }
    action to_node(bit<32> high, bit<32> low, bit<16> of) {
        address_high = high;
        address_low = low;
        server = of;
    }
    action to_nothing() {
        address_high = 0;
        address_low = 0;
        server = 0;
    }

    table stage_1 {
        key = { key_high[31:16] : range @name("chunk"); }
        actions = { to_range; to_table; NoAction; }
        default_action = NoAction();
        size = 2048;
    }
    table stage_2 {
        key = { inner : exact @name("table"); key_high[15:0] : range @name("chunk"); }
        actions = { to_range; to_table; NoAction; }
        default_action = NoAction();
        size = 4096;
    }
    table stage_3 {
        key = { inner : exact @name("table"); key_low[31:16] : range @name("chunk"); }
        actions = { to_range; to_table; NoAction; }
        default_action = NoAction();
        size = 4096;
    }
    table stage_4 {
        key = { inner : exact @name("table"); key_low[15:0] : range @name("chunk"); }
        actions = { to_range; NoAction; }
        default_action = NoAction();
        size = 2048;
    }
    table ranges {
        key = { range : exact; }
        actions = { to_node; to_nothing; }
        default_action = to_nothing();
        size = 1024;
    }

    apply {
        stage_1.apply();
        if (is_found == 0) {
            stage_2.apply();
        }
        if (is_found == 0) {
            stage_3.apply();
        }
        if (is_found == 0) {
            stage_4.apply();
        }
        ranges.apply();
    }
}

// Whether the key is above one pivot of the node at the address, out of halves: differences and
// exclusive ors, then a table that chooses one of four bits.
control Pivot(in bit<32> address_high, in bit<32> address_low, in bit<32> key_high,
              in bit<32> key_low, inout bit<1> is_above) {
    bit<32> sub_high = 0;
    bit<32> sub_low = 0;
    bit<32> xor_high = 0;
    bit<32> xor_low = 0;

    action compare(bit<32> high, bit<32> low) {
        sub_high = high - key_high;
        sub_low = low - key_low;
        xor_high = high ^ key_high;
        xor_low = low ^ key_low;
    }
    action take_key_high() { is_above = key_high[31:31]; }
    action take_sub_high() { is_above = sub_high[31:31]; }
    action take_key_low() { is_above = key_low[31:31]; }
    action take_sub_low() { is_above = sub_low[31:31]; }

    table get_pivot {
        key = { address_high : exact; address_low : exact; }
        actions = { compare; NoAction; }
        default_action = NoAction();
        size = 4096;
    }
    table result {
        key = { sub_high : ternary; xor_high[31:31] : ternary; xor_low[31:31] : ternary; }
        actions = { take_key_high; take_sub_high; take_key_low; take_sub_low; }
        const default_action = take_sub_high();
        size = 4;
        const entries = {
            (0, _, 1) : take_key_low();
            (0, _, 0) : take_sub_low();
            (_, 1, _) : take_key_high();
            (_, 0, _) : take_sub_high();
        }
    }

    apply {
        get_pivot.apply();
        result.apply();
    }
}

// One layer of nodes: the child of the node at the address, if the layer has that node.
control Layer(in bit<32> key_high, in bit<32> key_low, inout bit<32> address_high,
              inout bit<32> address_low) {
    Pivot() pivot_2;
    Pivot() pivot_3;
    Pivot() pivot_4;
    Pivot() pivot_5;
    Pivot() pivot_6;
    Pivot() pivot_7;
    Pivot() pivot_8;
    Pivot() pivot_9;
    Pivot() pivot_10;
    Pivot() pivot_11;
    Pivot() pivot_12;
    Pivot() pivot_13;
    Pivot() pivot_14;
    Pivot() pivot_15;
    Pivot() pivot_16;
    bit<1> above_2 = 0;
    bit<1> above_3 = 0;
    bit<1> above_4 = 0;
    bit<1> above_5 = 0;
    bit<1> above_6 = 0;
    bit<1> above_7 = 0;
    bit<1> above_8 = 0;
    bit<1> above_9 = 0;
    bit<1> above_10 = 0;
    bit<1> above_11 = 0;
    bit<1> above_12 = 0;
    bit<1> above_13 = 0;
    bit<1> above_14 = 0;
    bit<1> above_15 = 0;
    bit<1> above_16 = 0;

    action to_child(bit<32> high, bit<32> low) {
        address_high = high;
        address_low = low;
    }
    table get_child {
        key = {
            address_high : exact;
            address_low : exact;
            above_2 : exact;
            above_3 : exact;
            above_4 : exact;
            above_5 : exact;
            above_6 : exact;
            above_7 : exact;
            above_8 : exact;
            above_9 : exact;
            above_10 : exact;
            above_11 : exact;
            above_12 : exact;
            above_13 : exact;
            above_14 : exact;
            above_15 : exact;
            above_16 : exact;
        }
        actions = { to_child; NoAction; }
        default_action = NoAction();
        size = 65536;
    }

    apply {
        pivot_2.apply(address_high, address_low, key_high, key_low, above_2);
        pivot_3.apply(address_high, address_low, key_high, key_low, above_3);
        pivot_4.apply(address_high, address_low, key_high, key_low, above_4);
        pivot_5.apply(address_high, address_low, key_high, key_low, above_5);
        pivot_6.apply(address_high, address_low, key_high, key_low, above_6);
        pivot_7.apply(address_high, address_low, key_high, key_low, above_7);
        pivot_8.apply(address_high, address_low, key_high, key_low, above_8);
        pivot_9.apply(address_high, address_low, key_high, key_low, above_9);
        pivot_10.apply(address_high, address_low, key_high, key_low, above_10);
        pivot_11.apply(address_high, address_low, key_high, key_low, above_11);
        pivot_12.apply(address_high, address_low, key_high, key_low, above_12);
        pivot_13.apply(address_high, address_low, key_high, key_low, above_13);
        pivot_14.apply(address_high, address_low, key_high, key_low, above_14);
        pivot_15.apply(address_high, address_low, key_high, key_low, above_15);
        pivot_16.apply(address_high, address_low, key_high, key_low, above_16);
        get_child.apply();
    }
}

control Ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Root() root;
    Layer() layer_1;
    Layer() layer_2;

    action drop() { mark_to_drop(standard); }
    action send(port_t port) { standard.egress_spec = port; }
    action send_to(port_t port, bit<48> host) {
        standard.egress_spec = port;
        hdr.ethernet.destination = host;
    }
    // `service`: where queries go to that are for all servers together; `port`: of GETs.
    action be(bit<1> is_first, bit<1> is_last, bit<32> service, bit<16> port) {
        meta.is_first = is_first;
        meta.is_last = is_last;
        meta.service = service;
        meta.port = port;
    }
    action at(bit<32> address, bit<32> rkey) {
        meta.server_address = address;
        meta.rkey = rkey;
    }
    action measure() {
        meta.ip_excess = hdr.ip.bytes - hdr.udp.bytes;
    }
    action measure_get() {
        meta.udp_excess = hdr.udp.bytes - (bit<16>)hdr.get.key_bytes;
        meta.payload_excess = hdr.get.payload_bytes - hdr.get.key_bytes;
        meta.port_excess = hdr.udp.destination - meta.port;
    }
    action pass() {
        meta.kind = kNone;
    }

    // Its default action is all that it has.
    table place {
        actions = { be; }
        default_action = be(0, 0, 0, 0);
    }
    table servers {
        key = { meta.server[5:0] : exact @name("server"); }
        actions = { at; NoAction; }
        default_action = NoAction();
        size = 64;
    }
    table route {
        key = { hdr.ip.destination : lpm; }
        actions = { send; send_to; drop; }
        default_action = drop();
        size = 1024;
    }
    table bridge {
        key = { hdr.ethernet.destination : exact; }
        actions = { send; drop; }
        default_action = drop();
        size = 1024;
    }

    apply {
        if (!hdr.ethernet.isValid()) {
            drop();
            return;
        }
        if (!hdr.ip.isValid()) {
            bridge.apply();
            return;
        }
        place.apply();
        if (meta.kind != kNone) {
            measure();
            if (meta.is_first == 1 && meta.kind != kReadOnItsWay) {
                root.apply(meta.key_high, meta.key_low, meta.address_high, meta.address_low,
                           meta.server);
            }
            servers.apply();
            // A hint whose upper 16 bits are not 0 is a server's own.
            if (meta.kind != kGet || meta.address_high[31:16] == 0) {
                meta.descends = 1;
                layer_1.apply(meta.key_high, meta.key_low, meta.address_high, meta.address_low);
                layer_2.apply(meta.key_high, meta.key_low, meta.address_high, meta.address_low);
            }
            if (hdr.get.isValid()) {
                measure_get();
                if (meta.udp_excess != 59 || meta.payload_excess != 11 || meta.port_excess != 0) {
                    pass();
                }
            }
            if (meta.ip_excess != kIpBytes || (meta.kind == kBareRead && meta.is_first == 0)) {
                pass();
            }
            meta.not_destination = ~hdr.ip.destination;
            if (meta.is_first == 1 && meta.kind != kNone && meta.kind != kReadOnItsWay) {
                // A query for a server that does not have the key is the server's to refuse.
                if (meta.server_address == 0 || (hdr.ip.destination != meta.server_address
                                                 && hdr.ip.destination != meta.service)) {
                    pass();
                } else {
                    meta.destination_changes = hdr.ip.destination ^ meta.server_address;
                    hdr.ip.destination = meta.server_address;
                }
            }
        }
        route.apply();
    }
}

control Egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Layer() layer_3;
    bit<32> crc = 0;

    action clear_address() {
        meta.address_high = 0;
        meta.address_low = 0;
    }
    action write_hint() {
        meta.not_hint_low = ~hdr.get.hint_low;
        meta.not_hint_high = ~hdr.get.hint_high;
        meta.not_udp_check = ~hdr.udp.check;
        hdr.get.hint_low = meta.address_low[7:0] ++ meta.address_low[15:8]
                           ++ meta.address_low[23:16] ++ meta.address_low[31:24];
        hdr.get.hint_high = meta.address_high[7:0] ++ meta.address_high[15:8]
                            ++ meta.address_high[23:16] ++ meta.address_high[31:24];
    }
    action mend_udp() {
        hash(hdr.udp.check, HashAlgorithm.csum16, 16w0,
             { meta.not_udp_check, meta.not_destination, meta.not_hint_low, meta.not_hint_high,
               hdr.ip.destination, hdr.get.hint_low, hdr.get.hint_high }, 32w65536);
    }
    action note_ip() {
        meta.not_ip_check = ~hdr.ip.check;
        meta.not_ip_bytes = ~hdr.ip.bytes;
    }
    action write_temporary() {
        hdr.temporary.setValid();
        hdr.temporary.key_high = meta.key_high;
        hdr.temporary.key_low = meta.key_low;
        hdr.temporary.address_high = meta.address_high;
        hdr.temporary.address_low = meta.address_low;
        hdr.temporary.server = meta.server;
        hdr.temporary.zero = 0;
    }
    action write_memory() {
        meta.va_high_changes = hdr.reth.va_high ^ meta.address_high;
        meta.va_low_changes = hdr.reth.va_low ^ meta.address_low;
        meta.rkey_changes = meta.rkey;
        hdr.reth.va_high = meta.address_high;
        hdr.reth.va_low = meta.address_low;
        hdr.reth.rkey = meta.rkey;
        hdr.temporary.setInvalid();
    }
    action grow() {
        hdr.ip.bytes = hdr.ip.bytes + kTemporaryBytes;
        hdr.udp.bytes = hdr.udp.bytes + kTemporaryBytes;
        meta.ip_changes = 1;
    }
    action shrink() {
        hdr.ip.bytes = hdr.ip.bytes - kTemporaryBytes;
        hdr.udp.bytes = hdr.udp.bytes - kTemporaryBytes;
        meta.ip_changes = 1;
    }
    // Of the bytes that the ICRC covers only these can have changed; zeros stand for the others.
    action change_of_icrc() {
        hash(crc, HashAlgorithm.crc32, 32w0,
             { meta.destination_changes, 160w0, meta.va_high_changes, meta.va_low_changes,
               meta.rkey_changes, 32w0 }, 64w0x100000000);
    }
    action mend_icrc() {
        hdr.icrc.value = hdr.icrc.value ^ (crc[7:0] ++ crc[15:8] ++ crc[23:16] ++ crc[31:24])
                         ^ (kCrcOfZeros[7:0] ++ kCrcOfZeros[15:8] ++ kCrcOfZeros[23:16]
                            ++ kCrcOfZeros[31:24]);
        hdr.udp.check = 0;
    }

    apply {
        if (meta.descends == 1) {
            layer_3.apply(meta.key_high, meta.key_low, meta.address_high, meta.address_low);
        }
        if (meta.kind != kNone) {
            note_ip();
            if (meta.destination_changes != 0) {
                meta.ip_changes = 1;
            }
            if (meta.kind == kGet) {
                // Nothing but a hint that the server understands leaves the switches.
                if (meta.is_last == 1 && meta.address_high[31:16] == 0) {
                    clear_address();
                }
                write_hint();
                if (hdr.udp.check != 0) {
                    mend_udp();
                    if (hdr.udp.check == 0) {
                        hdr.udp.check = 0xffff;
                    }
                }
            } else {
                if (meta.is_last == 1) {
                    if (meta.kind == kReadOnItsWay) {
                        shrink();
                    }
                    write_memory();
                } else {
                    if (meta.kind == kBareRead) {
                        grow();
                    }
                    write_temporary();
                }
                change_of_icrc();
                mend_icrc();
            }
        }
    }
}

control ComputeChecksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(meta.ip_changes == 1,
                        { meta.not_ip_check, meta.not_ip_bytes, meta.not_destination, hdr.ip.bytes,
                          hdr.ip.destination }, hdr.ip.check, HashAlgorithm.csum16);
    }
}

control Deparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(TheParser(), VerifyChecksums(), Ingress(), Egress(), ComputeChecksums(), Deparser()) main;
