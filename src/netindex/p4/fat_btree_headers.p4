// fat_btree_headers.p4: headers of packets, and what is known of one on its way through the switch.

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
    bit<1> wants_root;    // the query comes from its client, and this is the first switch
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
