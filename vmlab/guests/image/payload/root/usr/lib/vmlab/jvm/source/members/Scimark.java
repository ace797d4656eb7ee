package members;

/**
 * Five kernels of numerical work, as in SciMark 2.0 (R. Pozo and B. Miller, NIST): a fast Fourier transform, successive
 * over-relaxation, a sum by Monte Carlo, a sparse matrix times a vector, and the LU factors of a matrix.
 */
final class Scimark implements Member {
    private static final int FOURIER = 1 << 14, GRID = 200, SPARSE = 5000, ENTRIES = 25_000, DENSE = 200, ROUNDS = 4;

    private long sum;

    @Override
    public long operation() {
        sum = 0;
        for (int round = 0; round < ROUNDS; round++) {
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
        double[] data = random(2 * FOURIER, 5), first = data.clone();
        for (int round = 0; round < 4; round++) {
            transform(data, -1);
            add(data[2 * round + 2]);
            transform(data, 1);
            for (int at = 0; at < data.length; at++)
                data[at] /= FOURIER;
        }
        for (int at = 0; at < data.length; at++)
            if (!(Math.abs(data[at] - first[at]) < 1e-9))
                throw new IllegalStateException("two Fourier transforms do not give what was transformed");
    }

    /** In place, of complex numbers in pairs; `sign` is that of the exponent. */
    private static void transform(double[] data, int sign) {
        for (int at = 0, turned = 0; at < FOURIER; at++) {
            if (at < turned)
                for (int part = 0; part < 2; part++) {
                    double held = data[2 * at + part];
                    data[2 * at + part] = data[2 * turned + part];
                    data[2 * turned + part] = held;
                }
            int bit = FOURIER >> 1;
            for (; (turned & bit) != 0; bit >>= 1)
                turned ^= bit;
            turned |= bit;
        }
        for (int half = 1; half < FOURIER; half *= 2) {
            double angle = sign * StrictMath.PI / half;
            double real = StrictMath.cos(angle), imaginary = StrictMath.sin(angle), wr = 1, wi = 0;
            for (int at = 0; at < half; at++) {
                for (int low = at; low < FOURIER; low += 2 * half) {
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
        double[] grid = random(GRID * GRID, 6);
        for (int round = 0; round < 100; round++)
            for (int row = 1; row < GRID - 1; row++)
                for (int at = row * GRID + 1; at < row * GRID + GRID - 1; at++)
                    grid[at] = 1.25 * 0.25 * (grid[at - GRID] + grid[at + GRID] + grid[at - 1] + grid[at + 1]) - 0.25 * grid[at];
        add(grid[GRID * GRID / 2 + GRID / 2]);
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
        int each = ENTRIES / SPARSE;
        double[] values = random(ENTRIES, 8), x = random(SPARSE, 9), y = new double[SPARSE];
        int[] columns = new int[ENTRIES];
        for (int at = 0; at < ENTRIES; at++)
            columns[at] = (at / each + at % each * (SPARSE / each)) % SPARSE;
        for (int round = 0; round < 100; round++) {
            for (int row = 0; row < SPARSE; row++) {
                double product = 0;
                for (int at = row * each; at < (row + 1) * each; at++)
                    product += x[columns[at]] * values[at];
                y[row] = product / each;
            }
            double[] held = x;
            x = y;
            y = held;
        }
        for (int row = 0; row < SPARSE; row += 97)
            add(x[row]);
    }

    private void factors() {
        double[] from = random(DENSE * DENSE, 10);
        double[][] a = new double[DENSE][];
        for (int row = 0; row < DENSE; row++)
            a[row] = java.util.Arrays.copyOfRange(from, row * DENSE, (row + 1) * DENSE);
        for (int column = 0; column < DENSE; column++) {
            int best = column;
            for (int row = column + 1; row < DENSE; row++)
                if (Math.abs(a[row][column]) > Math.abs(a[best][column]))
                    best = row;
            double[] held = a[column];
            a[column] = a[best];
            a[best] = held;
            for (int row = column + 1; row < DENSE; row++) {
                double factor = a[row][column] /= a[column][column];
                for (int at = column + 1; at < DENSE; at++)
                    a[row][at] -= factor * a[column][at];
            }
        }
        for (int row = 0; row < DENSE; row++)
            add(a[row][row]);
    }
}
