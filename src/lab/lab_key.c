/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_key.c: keys and their files. Whatever is in the file is the key, so that people may write
 * their own.
 */
#include "lab/lab_control.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIN_FILE_BYTES = 16, MAX_FILE_BYTES = 4096 };

static int refuse(const char *file, const char *what, int error, char message[LAB_MESSAGE_BYTES])
{
    snprintf(message, LAB_MESSAGE_BYTES, "key: '%s' %s", file, what);
    return -error;
}

static void start(void)
{
    if (sodium_init() < 0)
        abort(); /* no source of randomness: nothing here would be safe */
}

void lab_key_random(uint8_t key[LAB_KEY_BYTES])
{
    start();
    randombytes_buf(key, LAB_KEY_BYTES);
}

static int read_open(int fd, const char *file, uint8_t key[LAB_KEY_BYTES],
                     char message[LAB_MESSAGE_BYTES])
{
    uint8_t bytes[MAX_FILE_BYTES + 1];
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return refuse(file, "is no file", EINVAL, message);
    if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return refuse(file, "can be read by others; chmod 600 it", EACCES, message);
    ssize_t n = read(fd, bytes, sizeof(bytes));
    if (n < 0)
        return refuse(file, strerror(errno), EIO, message);
    while (n > 0 && (bytes[n - 1] == '\n' || bytes[n - 1] == '\r'))
        n--; /* a line's end is none of the key */
    if (n < MIN_FILE_BYTES || n > MAX_FILE_BYTES)
        return refuse(file, n < MIN_FILE_BYTES ? "has fewer than 16 bytes" : "is too long", EINVAL,
                      message);
    start();
    crypto_generichash(key, LAB_KEY_BYTES, bytes, (size_t)n, NULL, 0);
    sodium_memzero(bytes, sizeof(bytes));
    return 0;
}

int lab_key_read(const char *file, uint8_t key[LAB_KEY_BYTES], char message[LAB_MESSAGE_BYTES])
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would keep us */
    if (fd < 0) {
        snprintf(message, LAB_MESSAGE_BYTES, "key: cannot read '%s': %s", file, strerror(errno));
        return -errno;
    }
    int error = read_open(fd, file, key, message);
    close(fd);
    return error;
}

int lab_key_make(const char *file, char message[LAB_MESSAGE_BYTES])
{
    uint8_t key[LAB_KEY_BYTES];
    char text[2 * LAB_KEY_BYTES + 2];
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        int error = errno;
        snprintf(message, LAB_MESSAGE_BYTES, "key: cannot make '%s': %s", file, strerror(error));
        return -error;
    }
    lab_key_random(key);
    sodium_bin2hex(text, sizeof(text), key, sizeof(key));
    strcat(text, "\n"); /* NOLINT: room for it is above */
    ssize_t n = write(fd, text, strlen(text));
    int error = n != (ssize_t)strlen(text) ? ENOSPC : 0;
    if (close(fd) != 0)
        error = errno;
    sodium_memzero(text, sizeof(text));
    if (error != 0) {
        unlink(file);
        snprintf(message, LAB_MESSAGE_BYTES, "key: cannot write '%s': %s", file, strerror(error));
    }
    return -error;
}
