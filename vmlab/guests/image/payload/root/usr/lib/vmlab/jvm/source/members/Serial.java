package members;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.zip.CRC32;

/** Makes bytes of objects that refer to each other, and objects of the bytes. */
final class Serial implements Member {
    private static final int ROUNDS = 4;

    private final List<Order> orders = Order.some(1000, 3);

    @Override
    @SuppressWarnings("unchecked")
    public long operation() throws IOException, ClassNotFoundException {
        List<Order> last = orders;
        for (int round = 0; round < ROUNDS; round++) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
                out.writeObject(last);
            }
            try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
                last = (List<Order>) in.readObject();
            }
        }
        CRC32 sum = new CRC32();
        for (Order order : last)
            sum.update(order.described().getBytes(StandardCharsets.US_ASCII));
        return sum.getValue();
    }
}
