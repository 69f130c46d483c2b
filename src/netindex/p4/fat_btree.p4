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
// has no entry changes nothing. The root's stages look at the key alone, so that a packet is in
// them while lengths, the port and the duties of the switch are still being looked at: what is
// written depends on those (meta.kind). So the stages of a switch suffice (budget.py counts them).
//
// Arithmetic is of 32 bits at most: a key or an address is two halves. Pivot 1 of a node is 0 and
// neither stored nor compared: if no pivot is below the key, that leads to child 1.
//
// A key of less than 8 bytes is a word, a half word and a byte, of which it has some. A frame that
// ends before its IP packet does is passed as it is.

#include <core.p4>
#include <v1model.p4>

#include "fat_btree_headers.p4"
#include "fat_btree_parser.p4"
#include "fat_btree_tree.p4"

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
        if (meta.is_first == 1 && meta.kind != kReadOnItsWay) {
            meta.wants_root = 1;
        }
        if (meta.kind != kNone) {
            measure();
            root.apply(meta.wants_root, meta.key_high, meta.key_low, meta.address_high,
                       meta.address_low, meta.server);
            if (hdr.get.isValid()) {
                measure_get();
                if (meta.udp_excess != 59 || meta.payload_excess != 11 || meta.port_excess != 0) {
                    pass();
                }
            }
            if (meta.ip_excess != kIpBytes || (meta.kind == kBareRead && meta.is_first == 0)) {
                pass();
            }
            // A hint whose upper 16 bits are not 0 is a server's own.
            if (meta.kind != kGet || meta.address_high[31:16] == 0) {
                meta.descends = 1;
                layer_1.apply(meta.key_high, meta.key_low, meta.address_high, meta.address_low);
                layer_2.apply(meta.key_high, meta.key_low, meta.address_high, meta.address_low);
            }
            servers.apply();
            meta.not_destination = ~hdr.ip.destination;
            if (meta.wants_root == 1 && meta.kind != kNone) {
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

control VerifyChecksums(inout headers_t hdr, inout metadata_t meta) {
    apply { }
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
