package members;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Runs members one after another, each with a number of threads.
 *
 *   members.Suite THREADS WARMUP MEMBER:OPERATIONS...
 *
 * Each thread does WARMUP operations that are not timed; then the threads share OPERATIONS. Prints a line of JSON after
 * each operation that is timed, and one at the end of each member: the seconds from the first beginning to the last end,
 * those of each operation, and how often each checksum came, operations that were not timed included. Exits with 1 where
 * a member fails, with 2 for bad arguments.
 */
public final class Suite {
    private final String name;
    private final int threads, warmup, operations;
    private final CyclicBarrier barrier;
    private final AtomicInteger begun = new AtomicInteger(), done = new AtomicInteger();
    private final Map<String, Integer> checksums = new ConcurrentHashMap<>();
    private final long[] begins, ends;

    private Suite(String name, int threads, int warmup, int operations) {
        this.name = name;
        this.threads = threads;
        this.warmup = warmup;
        this.operations = operations;
        barrier = new CyclicBarrier(threads);
        begins = new long[operations];
        ends = new long[operations];
    }

    private static Member member(String name) throws Exception {
        return switch (name) {
            case "compress" -> new Compress();
            case "crypto" -> new Crypto();
            case "serial" -> new Serial();
            case "xml" -> new Xml();
            case "scimark" -> Scimark.small();
            case "scimark.large" -> Scimark.large();
            case "derby" -> new Derby();
            case "startup" -> new Startup();
            case "compiler" -> new Compiler();
            case "mpegaudio" -> new Mpegaudio();
            case "sunflow" -> new Sunflow();
            default -> throw new IllegalArgumentException("there is no member " + name);
        };
    }

    private void count(long checksum) {
        checksums.merge(Long.toHexString(checksum), 1, Integer::sum);
    }

    private void work() {
        try {
            Member member = member(name);
            for (int round = 0; round < warmup; round++)
                count(member.operation());
            barrier.await();
            for (int at = begun.getAndIncrement(); at < operations; at = begun.getAndIncrement()) {
                begins[at] = System.nanoTime();
                long checksum = member.operation();
                ends[at] = System.nanoTime();
                count(checksum);
                say("{\"member\": \"" + name + "\", \"done\": " + done.incrementAndGet() + ", \"of\": " + operations + "}");
            }
            member.close();
        } catch (Throwable error) {
            /* Other threads may wait for this one. */
            System.err.println("member " + name + ": " + error);
            System.exit(1);
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private void run() throws InterruptedException {
        Thread[] all = new Thread[threads];
        for (int at = 0; at < threads; at++)
            (all[at] = new Thread(this::work)).start();
        for (Thread thread : all)
            thread.join();
        long first = Long.MAX_VALUE, last = Long.MIN_VALUE;
        StringBuilder times = new StringBuilder();
        for (int at = 0; at < operations; at++) {
            first = Math.min(first, begins[at]);
            last = Math.max(last, ends[at]);
            times.append(at == 0 ? "" : ", ").append((ends[at] - begins[at]) / 1e9);
        }
        StringBuilder sums = new StringBuilder();
        for (Map.Entry<String, Integer> one : new TreeMap<>(checksums).entrySet())
            sums.append(sums.length() == 0 ? "" : ", ").append('"').append(one.getKey()).append("\": ").append(one.getValue());
        say("{\"member\": \"" + name + "\", \"java\": \"" + System.getProperty("java.vm.version") + "\", \"threads\": " + threads
            + ", \"warmup\": " + warmup + ", \"heap\": " + Runtime.getRuntime().maxMemory() + ", \"seconds\": "
            + (last - first) / 1e9 + ", \"times\": [" + times + "], \"checksums\": {" + sums + "}}");
    }

    private static int number(String text, int least) {
        try {
            int value = Integer.parseInt(text);
            if (value >= least && value <= 1_000_000)
                return value;
        } catch (NumberFormatException error) {
            /* said below */
        }
        System.err.println("members: " + text + " is not a whole number from " + least + " to 1000000");
        System.exit(2);
        return 0;
    }

    public static void main(String[] words) throws InterruptedException {
        if (words.length < 3) {
            System.err.println("usage: members.Suite THREADS WARMUP MEMBER:OPERATIONS...");
            System.exit(2);
        }
        int threads = number(words[0], 1), warmup = number(words[1], 0);
        for (int at = 2; at < words.length; at++) {
            String[] parts = words[at].split(":", 2);
            new Suite(parts[0], threads, warmup, number(parts.length == 2 ? parts[1] : "", 1)).run();
            System.gc();
        }
    }
}
