// fat_btree_parser.p4: finds out which packets may be queries, and their keys (meta.kind).
//
// Lengths, and the port of GETs, are left to the ingress: a parser compares with constants alone.

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
