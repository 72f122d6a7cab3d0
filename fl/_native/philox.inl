// Eight blocks, for one kind of processor: low_product(a, b) multiplies the lower halves of a's lanes by b.
static void eight_blocks(Eight &of) {
    Words k = load_lanes<Words>(of.key[0]), m = load_lanes<Words>(of.key[1]);
    Words a = load_lanes<Words>(of.counter[0]), b = load_lanes<Words>(of.counter[1]);
    Words c = load_lanes<Words>(of.counter[2]), d = load_lanes<Words>(of.counter[3]);
    for (int round = 0; round < 10; round++) {
        const Words one = low_product(a, 0xD2511F53u), other = low_product(c, 0xCD9E8D57u);
        a = (other >> 32) ^ b ^ k;
        b = other;
        c = (one >> 32) ^ d ^ m;
        d = one;
        k += 0x9E3779B9u;
        m += 0xBB67AE85u;
    }
    store_lanes(of.words[0], a & 0xffffffff);
    store_lanes(of.words[1], b & 0xffffffff);
    store_lanes(of.words[2], c & 0xffffffff);
    store_lanes(of.words[3], d & 0xffffffff);
}
