// fat_btree_tree.p4: the fat root and the nodes (switch_tables.h).

// The fat root: the range of a key, and where it leads to. Each stage looks at 16 bits of the key
// in the table that the stage before has named; stage 1 has one table, 0. A switch that is not the
// first does not want to know.
control Root(in bit<1> is_wanted, in bit<32> key_high, in bit<32> key_low,
             inout bit<32> address_high, inout bit<32> address_low, inout bit<16> server) {
    bit<16> inner = 0;    // table of the next stage
    bit<1> is_found = 0;  // the range is known, and no further stage is looked at
    bit<16> found = 0;

    action to_range(bit<16> number) {
        found = number;
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
        key = { found : exact @name("range"); }
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
        if (is_wanted == 1) {
            ranges.apply();
        }
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
