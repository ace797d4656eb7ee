package members;

/** Numbers and words that follow from a seed, the same on every machine. */
final class Text {
    private long state;

    Text(long seed) {
        state = seed;
    }

    /** The next number, from 0 to below `bound`: SplitMix64 by Steele, Lea and Flood, OOPSLA 2014, its upper 31 bits. */
    int next(int bound) {
        state += 0x9E3779B97F4A7C15L;
        long mixed = state;
        mixed = (mixed ^ (mixed >>> 30)) * 0xBF58476D1CE4E5B9L;
        mixed = (mixed ^ (mixed >>> 27)) * 0x94D049BB133111EBL;
        mixed ^= mixed >>> 31;
        return (int) ((mixed >>> 33) % bound);
    }

    /** The next number, from 0 to below 1. */
    double fraction() {
        return next(1 << 30) / (double) (1 << 30);
    }

    /** A word of two to nine letters. */
    String word() {
        StringBuilder word = new StringBuilder();
        for (int left = 2 + next(8); left > 0; left--)
            word.append((char) ('a' + next(26)));
        return word.toString();
    }

    /** `size` bytes of words with blanks between them, of which some come much more often than others. */
    byte[] bytes(int size) {
        String[] words = new String[2000];
        for (int at = 0; at < words.length; at++)
            words[at] = word();
        StringBuilder text = new StringBuilder();
        while (text.length() < size)
            text.append(words[next(1 + next(words.length))]).append(' ');
        return text.substring(0, size).getBytes(java.nio.charset.StandardCharsets.US_ASCII);
    }
}
