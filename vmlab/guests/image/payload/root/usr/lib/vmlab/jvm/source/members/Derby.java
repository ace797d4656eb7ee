package members;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.zip.CRC32;

/**
 * Telephone calls are written into a database of Apache Derby, and billed with decimal numbers of more than 64 bits.
 *
 * The database is in memory, so that no disk takes part, and of this thread alone, so that its result is the same with
 * any number of threads.
 */
final class Derby implements Member {
    private static final int CUSTOMERS = 100, KINDS = 20, CALLS = 1000, TOGETHER = 50, DIGITS = 15, CENTS = 6;
    private static final AtomicInteger OPENED = new AtomicInteger();

    static {
        /* Derby would make a file of its messages where Java was started. */
        System.setProperty("derby.stream.error.field", "java.lang.System.err");
    }

    private final String place = "jdbc:derby:memory:calls" + OPENED.incrementAndGet();
    private final Connection base = DriverManager.getConnection(place + ";create=true");
    private final int[] customers = new int[CALLS], kinds = new int[CALLS], seconds = new int[CALLS];

    Derby() throws SQLException {
        base.setAutoCommit(false);
        try (Statement to = base.createStatement()) {
            to.execute("CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(9), balance DECIMAL(31, 6) NOT NULL)");
            to.execute("CREATE TABLE rates (kind INT PRIMARY KEY, price DECIMAL(20, 15) NOT NULL, tax DECIMAL(5, 4) NOT NULL)");
            to.execute("CREATE TABLE calls (id INT PRIMARY KEY, customer INT NOT NULL REFERENCES customers,"
                + " kind INT NOT NULL REFERENCES rates, seconds INT NOT NULL)");
        }
        Text text = new Text(14);
        try (PreparedStatement add = base.prepareStatement("INSERT INTO customers VALUES (?, ?, 0)")) {
            for (int id = 0; id < CUSTOMERS; id++)
                run(add, id, text.word());
        }
        try (PreparedStatement add = base.prepareStatement("INSERT INTO rates VALUES (?, ?, ?)")) {
            for (int kind = 0; kind < KINDS; kind++) {
                long price = text.next(1_000_000_000) * 1_000_000_000L + text.next(1_000_000_000);
                run(add, kind, new BigDecimal(BigInteger.valueOf(price), DIGITS), BigDecimal.valueOf(text.next(3000), 4));
            }
        }
        base.commit();
        for (int id = 0; id < CALLS; id++) {
            customers[id] = text.next(CUSTOMERS);
            kinds[id] = text.next(KINDS);
            seconds[id] = 1 + text.next(10_000);
        }
    }

    private static void run(PreparedStatement statement, Object... values) throws SQLException {
        for (int at = 0; at < values.length; at++)
            statement.setObject(at + 1, values[at]);
        if (statement.executeUpdate() != 1)
            throw new IllegalStateException("not one row was changed");
    }

    @Override
    public long operation() throws SQLException {
        StringBuilder said = new StringBuilder();
        call();
        BigDecimal all = bill(said);
        try (Statement ask = base.createStatement()) {
            ResultSet rows = ask.executeQuery("SELECT r.kind, COUNT(*), SUM(c.seconds * r.price) FROM calls c"
                + " JOIN rates r ON c.kind = r.kind GROUP BY r.kind ORDER BY r.kind");
            while (rows.next())
                said.append(rows.getInt(1)).append(' ').append(rows.getInt(2)).append(' ')
                    .append(rows.getBigDecimal(3).toPlainString()).append('\n');
            rows = ask.executeQuery("SELECT SUM(balance) FROM customers");
            if (!rows.next() || rows.getBigDecimal(1).compareTo(all) != 0)
                throw new IllegalStateException("the customers' balances are not the sum of their bills");
            ask.executeUpdate("UPDATE customers SET balance = 0");
            if (ask.executeUpdate("DELETE FROM calls") != CALLS)
                throw new IllegalStateException("what was rolled back is in the database, or what was committed is not");
        }
        base.commit();
        CRC32 sum = new CRC32();
        sum.update(said.toString().getBytes(StandardCharsets.US_ASCII));
        return sum.getValue();
    }

    /** Writes all calls, some in each transaction; the calls of each transaction are rolled back once before. */
    private void call() throws SQLException {
        try (PreparedStatement add = base.prepareStatement("INSERT INTO calls VALUES (?, ?, ?, ?)")) {
            for (int first = 0; first < CALLS; first += TOGETHER)
                for (boolean kept : new boolean[] {false, true}) {
                    for (int id = first; id < first + TOGETHER; id++)
                        run(add, id, customers[id], kinds[id], seconds[id]);
                    if (kept)
                        base.commit();
                    else
                        base.rollback();
                }
        }
    }

    /** Adds what each customer's calls cost to the customer's balance; what all cost. */
    private BigDecimal bill(StringBuilder said) throws SQLException {
        BigDecimal all = BigDecimal.ZERO;
        try (PreparedStatement ask = base.prepareStatement("SELECT c.seconds, r.price, r.tax FROM calls c"
                + " JOIN rates r ON c.kind = r.kind WHERE c.customer = ? ORDER BY c.id");
            PreparedStatement add = base.prepareStatement("UPDATE customers SET balance = balance + ? WHERE id = ?")) {
            for (int id = 0; id < CUSTOMERS; id++) {
                BigDecimal sum = BigDecimal.ZERO;
                ask.setInt(1, id);
                try (ResultSet calls = ask.executeQuery()) {
                    while (calls.next()) {
                        BigDecimal cost = calls.getBigDecimal(2).multiply(BigDecimal.valueOf(calls.getInt(1)));
                        cost = cost.setScale(CENTS, RoundingMode.HALF_EVEN);
                        sum = sum.add(cost).add(cost.multiply(calls.getBigDecimal(3)).setScale(CENTS, RoundingMode.DOWN));
                    }
                }
                run(add, sum, id);
                base.commit();
                all = all.add(sum);
                said.append(id).append(' ').append(sum.toPlainString()).append('\n');
            }
        }
        return all;
    }

    @Override
    public void close() throws SQLException {
        base.close();
        try {
            DriverManager.getConnection(place + ";drop=true").close();
        } catch (SQLException done) {
            /* Derby says so in this way. */
            if (!"08006".equals(done.getSQLState()))
                throw done;
        }
    }
}
