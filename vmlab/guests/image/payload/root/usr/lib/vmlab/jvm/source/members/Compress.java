package members;

import java.util.Arrays;
import java.util.zip.CRC32;

/** Compresses a text by the algorithm of T. A. Welch (IEEE Computer 17(6), 1984) and restores it; codes have 16 bits. */
final class Compress implements Member {
    private static final int CODES = 1 << 16;
    private static final int SLOTS = 1 << 18;
    private static final int ROUNDS = 5;

    private final byte[] text = new Text(1).bytes(1 << 20);
    private final int[] keys = new int[SLOTS];
    private final int[] values = new int[SLOTS];

    @Override
    public long operation() {
        long sum = 0;
        for (int round = 0; round < ROUNDS; round++)
            sum = once();
        return sum;
    }

    private long once() {
        int[] codes = new int[text.length];
        int count = compress(codes);
        byte[] restored = restore(codes, count);
        if (!Arrays.equals(text, restored))
            throw new IllegalStateException("what was compressed is not restored");
        CRC32 sum = new CRC32();
        for (int at = 0; at < count; at++) {
            sum.update(codes[at] >>> 8);
            sum.update(codes[at]);
        }
        return sum.getValue();
    }

    /** Fills `codes`; how many there are. When the table is full no more is learned. */
    private int compress(int[] codes) {
        Arrays.fill(keys, -1);
        int known = 256, count = 0, prefix = text[0] & 255;
        for (int at = 1; at < text.length; at++) {
            int letter = text[at] & 255, key = prefix << 8 | letter;
            int slot = key * 0x9E3779B1 >>> 14;
            while (keys[slot] != -1 && keys[slot] != key)
                slot = slot + 1 & SLOTS - 1;
            if (keys[slot] == key) {
                prefix = values[slot];
                continue;
            }
            if (known < CODES) {
                keys[slot] = key;
                values[slot] = known++;
            }
            codes[count++] = prefix;
            prefix = letter;
        }
        codes[count++] = prefix;
        return count;
    }

    private byte[] restore(int[] codes, int count) {
        int[] before = new int[CODES];
        byte[] last = new byte[CODES];
        byte[] restored = new byte[text.length], turned = new byte[text.length];
        int known = 256, length = 0;
        for (int at = 0; at < count; at++) {
            int code = codes[at], size = 0, step = code;
            if (at > 0 && code == known)
                step = codes[at - 1];
            for (; step >= 256; step = before[step])
                turned[size++] = last[step];
            turned[size++] = (byte) step;
            int begin = length;
            while (size > 0)
                restored[length++] = turned[--size];
            if (at > 0 && known < CODES) {
                before[known] = codes[at - 1];
                last[known] = restored[begin];
                if (code == known++)
                    restored[length++] = restored[begin];
            }
        }
        return length == restored.length ? restored : new byte[0];
    }
}
