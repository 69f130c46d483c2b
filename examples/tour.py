"""tour.py: the library from Python: points, a batch, a scan; tour.c is the same. An argument is the
address of a server; without one the store is in this process."""

import sys

import skep

with skep.connect(sys.argv[1]) if len(sys.argv) > 1 else skep.open() as store:
    store["fruit:apple"] = "red"
    swapped = store.compare_and_set("fruit:apple", "red", "yellow")
    print(f"swapped {swapped:d}, apple is {store['fruit:apple'].decode()}")

    with store.batch(atomic=True) as batch:
        batch.require_absent("fruit:pear")
        batch.put("fruit:pear", "green")
        visits = batch.apply("visits", "add-decimal", "3")
    print(f"applied {batch.applied:d}, visits {visits.integer}")

    for key, value in store.scan(prefix="fruit:"):
        print(key.decode(), "=", value.decode())
