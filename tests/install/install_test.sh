#!/usr/bin/env bash
# Goal: a program outside this tree compiles, links and runs with the installed package alone.
# Method: install into an empty prefix, move the prefix (nothing in it may remember where it was),
# build examples/ as a stranger would, with find_package, with pkg-config and as C, run the one in
# Python, and compare what they print with examples/*.expected.
#
# Usage: install_test.sh SOURCE_DIR BUILD_DIR WORK_DIR CXX
set -euo pipefail

source_dir=$1
build_dir=$2
work_dir=$3
cxx=$4

rm -rf "$work_dir"
mkdir -p "$work_dir"
cmake --install "$build_dir" --prefix "$work_dir/first" >"$work_dir/install.log"
mv "$work_dir/first" "$work_dir/prefix"
prefix=$work_dir/prefix

# A copy, so that no relative path leads back into the tree.
cp -r "$source_dir/examples" "$work_dir/examples"
examples=$work_dir/examples

echo "== find_package(skep)"
cmake -S "$work_dir/examples" -B "$work_dir/cmake" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_PREFIX_PATH="$prefix"
cmake --build "$work_dir/cmake"
for example in quickstart transactions batching tour; do
  "$work_dir/cmake/$example" | diff "$examples/$example.expected" -
done

echo "== pkg-config skep"
pc_dirs=("$prefix"/lib*/pkgconfig "$prefix"/lib/*/pkgconfig)
PKG_CONFIG_PATH=$(IFS=: && echo "${pc_dirs[*]}")
export PKG_CONFIG_PATH
for mode in "" --static; do
  # shellcheck disable=SC2046  # the flags are words
  "$cxx" -std=c++23 "$examples/quickstart.cc" -o "$work_dir/quickstart" \
    $(pkg-config $mode --cflags --libs skep)
  "$work_dir/quickstart" | diff "$examples/quickstart.expected" -
done

echo "== C, with nothing but -lskep"
lib_dir=$(dirname "$(find "$prefix" -name libskep.so)")
cc -std=c99 -I"$prefix/include" "$examples/tour.c" -L"$lib_dir" -lskep -Wl,-rpath,"$lib_dir" \
  -o "$work_dir/tour"
"$work_dir/tour" | diff "$examples/tour.expected" -

echo "== Python"
env -u SKEP_LIBRARY PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$prefix/share/skep/python" \
  /usr/bin/python3 "$examples/tour.py" | diff "$examples/tour.expected" -

echo "== installed programs start"
for program in "$prefix"/bin/*; do
  [[ -e $program ]] || continue
  "$program" --help >"$work_dir/help.log"
  echo "$(basename "$program") --help: $(head -n 1 "$work_dir/help.log")"
done
