package members;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;

/** Something with many parts: what is made into bytes, and into XML. */
final class Order implements Serializable {
    private static final long serialVersionUID = 1;

    final int number;
    final String customer;
    final List<Item> items = new ArrayList<>();
    final TreeMap<String, Integer> marks = new TreeMap<>();
    final long[] stamps;
    final Order before;

    record Item(String name, int count, double price) implements Serializable {}

    private Order(int number, Text text, Order before) {
        this.number = number;
        this.before = before;
        customer = text.word();
        for (int left = 1 + text.next(8); left > 0; left--)
            items.add(new Item(text.word(), 1 + text.next(20), text.next(100_000) / 100.0));
        for (int left = text.next(5); left > 0; left--)
            marks.put(text.word(), text.next(1000));
        stamps = new long[4 + text.next(8)];
        for (int at = 0; at < stamps.length; at++)
            stamps[at] = text.next(Integer.MAX_VALUE);
    }

    /** `count` orders; each knows one of the ten before it. */
    static List<Order> some(int count, long seed) {
        Text text = new Text(seed);
        List<Order> orders = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            Order before = number == 0 ? null : orders.get(number - 1 - text.next(Math.min(number, 10)));
            orders.add(new Order(number, text, before));
        }
        return orders;
    }

    /** All that it holds, in one line. */
    String described() {
        String earlier = before == null ? "none" : String.valueOf(before.number);
        return number + " " + customer + " " + items + " " + marks + " " + java.util.Arrays.toString(stamps) + " " + earlier;
    }
}
