"""An interpreter of P4-16 programs for v1model. docs/p4.md has the subset that it takes.

    source.py     where in the text something stands, and how a program is refused
    lexer.py      text -> tokens
    syntax.py     what the grammar's productions become
    parse_*.py    tokens -> syntax
    p4types.py    the types, and which expressions have them
    v1model.py    what core.p4 and v1model.p4 declare
    check_*.py    refuses what a compiler refuses; gives every expression its type and every name its declaration
    operators.py  arithmetic
    values.py     values of headers, and packets while they are parsed
    tables.py     a table's entries and how one is found; runtime.py fills them from JSON
    checksums.py  csum16 and crc32
    evaluate.py   runs a checked program's statements; switch.py its pipeline, packet in, packet out
    budget.py     what a program takes of a switch: stages, memory, widths of ranges and of arithmetic

Only what is refused by no compiler is taken. The other way round, much that a compiler takes is refused here; the
message says then that it is not in the subset.
"""
