#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Prints src/wire/icrc_tables.h: inverse powers of x^8 modulo the CRC-32 polynomial, which move a CRC
syndrome back over the bytes that follow the flipped ones, and factors for folding. Run it, redirect
it over that file.
"""
POLY = 0xEDB88320  # CRC-32, bit-reflected: bit 31 is x^0, bit 0 is x^31


def divide_by_x(a):
    """a / x mod P: x^0 must vanish before the shift, so add P where it is set."""
    if a & 0x80000000:
        return ((a ^ POLY) << 1 | 1) & 0xFFFFFFFF
    return a << 1 & 0xFFFFFFFF


def inverse_powers(step_bytes, count):
    out, a = [], 0x80000000
    for _ in range(count):
        out.append(a)
        for _ in range(8 * step_bytes):
            a = divide_by_x(a)
    return out


def power(n):
    """x^n mod P."""
    a = 0x80000000
    for _ in range(n):
        a = a >> 1 ^ (POLY if a & 1 else 0)
    return a


def fold_table(distances):
    """Factors that move 16 bytes on by a distance, low and high half; a carry-less product of
    reflected values is one bit short, hence the shift."""
    print("enum icrc_fold_by { %s };" % ", ".join("ICRC_FOLD_%d" % d for d in distances))
    print("static const uint64_t icrc_fold[%d][2] = {" % len(distances))
    for d in distances:
        print("    {0x%09xu, 0x%09xu}," % (power(8 * d + 32) << 1, power(8 * d - 32) << 1))
    print("};")


def table(name, values):
    print("static const uint32_t %s[%d] = {" % (name, len(values)))
    for i in range(0, len(values), 8):
        print("    " + " ".join("0x%08x," % v for v in values[i : i + 8]))
    print("};")


print("""/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * icrc_tables.h: made by scripts/gen-icrc-tables.py, not by hand. Inverse powers of x^8 modulo the
 * CRC-32 polynomial, bit-reflected: [k] undoes k (or 64 k) bytes that went through the CRC. Then
 * factors for folding with carry-less multiplication (icrc_copy.c).
 */
#ifndef WIRE_ICRC_TABLES_H
#define WIRE_ICRC_TABLES_H

#include <stdint.h>

/* clang-format off */""")
table("icrc_unshift_1_byte", inverse_powers(1, 64))
table("icrc_unshift_64_bytes", inverse_powers(64, 128))
fold_table([16, 32, 48, 64, 256])
print("""/* clang-format on */

#endif""")
