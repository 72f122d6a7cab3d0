// Blocks of a row, eight at a time, for one kind of processor: low_product(a, b) multiplies the lower halves of a's
// lanes by b.
FL_INLINE Words low_lanes(const Row &row, int source, Py_ssize_t first, Py_ssize_t lanes) {
    const Py_ssize_t step = row.step[source];
    const char *from = row.from[source] + first * step;
    if (!step) return Words{} + row.number(source, from);
    if (step == 8 && source < KEY && lanes == LANES) return load_lanes<Words>(reinterpret_cast<const uint64_t *>(from));
    Words found = {};
    for (Py_ssize_t l = 0; l < lanes; l++) found[l] = row.number(source, from + l * step);
    return found;
}

static void row_blocks(Row &row, Py_ssize_t first, Py_ssize_t count) {
    Words keys[10][2];  // what each of Philox's rounds takes of the key, which is one for most rows
    for (Py_ssize_t i = 0; i < count; i += LANES) {
        if (count >= LANES && i > count - LANES) i = count - LANES;  // the last ones, some of them again
        const Py_ssize_t at = first + i, lanes = count < LANES ? count : LANES;
        Words a = low_lanes(row, 0, at, lanes), b = low_lanes(row, 1, at, lanes);
        Words c = low_lanes(row, 2, at, lanes), d = low_lanes(row, 3, at, lanes);
        if (i == 0 || row.step[KEY]) {
            const Words k = low_lanes(row, KEY, at, lanes), m = low_lanes(row, KEY + 1, at, lanes);
            for (uint64_t round = 0; round < 10; round++) {
                keys[round][0] = k + round * 0x9E3779B9u;
                keys[round][1] = m + round * 0xBB67AE85u;
            }
        }
        row.high |= a | b | c | d;
        for (const Words(&key)[2] : keys) {
            const Words one = low_product(a, 0xD2511F53u), other = low_product(c, 0xCD9E8D57u);
            a = (other >> 32) ^ b ^ key[0];
            b = other;
            c = (one >> 32) ^ d ^ key[1];
            d = one;
        }
        store_lanes(row.words[0] + i, a & 0xffffffff);
        store_lanes(row.words[1] + i, b & 0xffffffff);
        store_lanes(row.words[2] + i, c & 0xffffffff);
        store_lanes(row.words[3] + i, d & 0xffffffff);
    }
}
