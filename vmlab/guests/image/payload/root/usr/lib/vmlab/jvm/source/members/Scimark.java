package members;

/**
 * Five kernels of numerical work, as in SciMark 2.0 (R. Pozo and B. Miller, NIST): a fast Fourier transform, successive
 * over-relaxation, a sum by Monte Carlo, a sparse matrix times a vector, and the LU factors of a matrix.
 */
final class Scimark implements Member {
    /* How often: all kernels; transforms there and back; relaxation and the product. */
    private final int rounds, turns, times;
    private final int fourier, grid, sparse, entries, dense;
    private long sum;

    private Scimark(int rounds, int turns, int times, int fourier, int grid, int sparse, int entries, int dense) {
        this.rounds = rounds;
        this.turns = turns;
        this.times = times;
        this.fourier = fourier;
        this.grid = grid;
        this.sparse = sparse;
        this.entries = entries;
        this.dense = dense;
    }

    /** Data that a processor's cache holds. */
    static Scimark small() {
        return new Scimark(4, 4, 100, 1 << 14, 200, 5000, 25_000, 200);
    }

    /** SciMark's own large sizes: data of 8 to 16 MiB in each kernel but Monte Carlo, which has none. */
    static Scimark large() {
        return new Scimark(1, 1, 10, 1 << 20, 1000, 100_000, 1_000_000, 1000);
    }

    @Override
    public long operation() {
        sum = 0;
        for (int round = 0; round < rounds; round++) {
            fourier();
            relax();
            monteCarlo();
            sparse();
            factors();
        }
        return sum;
    }

    /** Values are the same bits everywhere: Java's arithmetic is strict, and so are the functions of StrictMath. */
    private void add(double value) {
        sum = sum * 31 + Double.doubleToLongBits(value);
    }

    private static double[] random(int count, long seed) {
        Text text = new Text(seed);
        double[] values = new double[count];
        for (int at = 0; at < count; at++)
            values[at] = text.fraction();
        return values;
    }

    private void fourier() {
        double[] data = random(2 * fourier, 5), first = data.clone();
        for (int round = 0; round < turns; round++) {
            transform(data, -1);
            add(data[2 * round + 2]);
            transform(data, 1);
            for (int at = 0; at < data.length; at++)
                data[at] /= fourier;
        }
        for (int at = 0; at < data.length; at++)
            if (!(Math.abs(data[at] - first[at]) < 1e-9))
                throw new IllegalStateException("two Fourier transforms do not give what was transformed");
    }

    /** In place, of complex numbers in pairs; `sign` is that of the exponent. */
    private void transform(double[] data, int sign) {
        for (int at = 0, turned = 0; at < fourier; at++) {
            if (at < turned)
                for (int part = 0; part < 2; part++) {
                    double held = data[2 * at + part];
                    data[2 * at + part] = data[2 * turned + part];
                    data[2 * turned + part] = held;
                }
            int bit = fourier >> 1;
            for (; (turned & bit) != 0; bit >>= 1)
                turned ^= bit;
            turned |= bit;
        }
        for (int half = 1; half < fourier; half *= 2) {
            double angle = sign * StrictMath.PI / half;
            double real = StrictMath.cos(angle), imaginary = StrictMath.sin(angle), wr = 1, wi = 0;
            for (int at = 0; at < half; at++) {
                for (int low = at; low < fourier; low += 2 * half) {
                    int i = 2 * low, j = 2 * (low + half);
                    double tr = wr * data[j] - wi * data[j + 1], ti = wr * data[j + 1] + wi * data[j];
                    data[j] = data[i] - tr;
                    data[j + 1] = data[i + 1] - ti;
                    data[i] += tr;
                    data[i + 1] += ti;
                }
                double next = wr * real - wi * imaginary;
                wi = wr * imaginary + wi * real;
                wr = next;
            }
        }
    }

    private void relax() {
        int side = grid;
        double[] held = random(side * side, 6);
        for (int round = 0; round < times; round++)
            for (int row = 1; row < side - 1; row++)
                for (int at = row * side + 1; at < row * side + side - 1; at++)
                    held[at] = 1.25 * 0.25 * (held[at - side] + held[at + side] + held[at - 1] + held[at + 1]) - 0.25 * held[at];
        add(held[side * side / 2 + side / 2]);
    }

    private void monteCarlo() {
        Text text = new Text(7);
        int inside = 0, all = 1_000_000;
        for (int at = 0; at < all; at++) {
            double x = text.fraction(), y = text.fraction();
            if (x * x + y * y <= 1)
                inside++;
        }
        double pi = 4.0 * inside / all;
        if (!(Math.abs(pi - Math.PI) < 0.01))
            throw new IllegalStateException("pi is " + pi + " by Monte Carlo");
        add(pi);
    }

    private void sparse() {
        int each = entries / sparse;
        double[] values = random(entries, 8), x = random(sparse, 9), y = new double[sparse];
        int[] columns = new int[entries];
        for (int at = 0; at < entries; at++)
            columns[at] = (at / each + at % each * (sparse / each)) % sparse;
        for (int round = 0; round < times; round++) {
            for (int row = 0; row < sparse; row++) {
                double product = 0;
                for (int at = row * each; at < (row + 1) * each; at++)
                    product += x[columns[at]] * values[at];
                y[row] = product / each;
            }
            double[] held = x;
            x = y;
            y = held;
        }
        for (int row = 0; row < sparse; row += 97)
            add(x[row]);
    }

    private void factors() {
        double[] from = random(dense * dense, 10);
        double[][] a = new double[dense][];
        for (int row = 0; row < dense; row++)
            a[row] = java.util.Arrays.copyOfRange(from, row * dense, (row + 1) * dense);
        for (int column = 0; column < dense; column++) {
            int best = column;
            for (int row = column + 1; row < dense; row++)
                if (Math.abs(a[row][column]) > Math.abs(a[best][column]))
                    best = row;
            double[] held = a[column];
            a[column] = a[best];
            a[best] = held;
            for (int row = column + 1; row < dense; row++) {
                double factor = a[row][column] /= a[column][column];
                for (int at = column + 1; at < dense; at++)
                    a[row][at] -= factor * a[column][at];
            }
        }
        for (int row = 0; row < dense; row++)
            add(a[row][row]);
    }
}
