/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad.c: the header of a MAD.
 */
#include "wire/mad.h"

#include <string.h>

#include "base/bytes.h"

enum { CLASS_AT = 1, CLASS_VERSION_AT = 2, METHOD_AT = 3 };

const char *mad_verdict_name(enum mad_verdict v)
{
    static const char *const names[MAD_VERDICT_COUNT] = {
        [MAD_OK] = "ok",
        [MAD_BAD_LENGTH] = "bad length",
        [MAD_BAD_BASE_VERSION] = "bad base version",
        [MAD_NOT_CM] = "another management class",
        [MAD_BAD_CLASS_VERSION] = "bad class version",
        [MAD_BAD_METHOD] = "bad method",
        [MAD_BAD_ATTRIBUTE] = "bad attribute",
        [MAD_BAD_FIELD] = "bad field",
    };
    return (unsigned)v < MAD_VERDICT_COUNT ? names[v] : "?";
}

enum mad_verdict mad_check(const uint8_t *mad, size_t n)
{
    if (n != MAD_BYTES)
        return MAD_BAD_LENGTH;
    if (mad[0] != MAD_BASE_VERSION)
        return MAD_BAD_BASE_VERSION;
    if (mad[CLASS_AT] != MAD_CLASS_CM)
        return MAD_NOT_CM;
    if (mad[CLASS_VERSION_AT] != MAD_CLASS_CM_VERSION)
        return MAD_BAD_CLASS_VERSION;
    return mad[METHOD_AT] == MAD_METHOD_SEND ? MAD_OK : MAD_BAD_METHOD;
}

void mad_parse(const uint8_t *mad, struct mad_header *h)
{
    *h = (struct mad_header){
        .mgmt_class = mad[CLASS_AT],
        .class_version = mad[CLASS_VERSION_AT],
        .method = mad[METHOD_AT],
        .status = get_be16(mad + 4),
        .tid = get_be64(mad + 8),
        .attribute = get_be16(mad + 16),
        .modifier = get_be32(mad + 20),
    };
}

void mad_build(const struct mad_header *h, uint8_t *mad)
{
    memset(mad, 0, MAD_HEADER_BYTES);
    mad[0] = MAD_BASE_VERSION;
    mad[CLASS_AT] = h->mgmt_class;
    mad[CLASS_VERSION_AT] = h->class_version;
    mad[METHOD_AT] = h->method;
    put_be16(mad + 4, h->status);
    put_be64(mad + 8, h->tid);
    put_be16(mad + 16, h->attribute);
    put_be32(mad + 20, h->modifier);
}
