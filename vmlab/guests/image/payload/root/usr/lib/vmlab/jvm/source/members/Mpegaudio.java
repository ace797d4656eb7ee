package members;

import java.io.ByteArrayInputStream;
import java.util.zip.CRC32;
import javazoom.jl.decoder.Bitstream;
import javazoom.jl.decoder.Decoder;
import javazoom.jl.decoder.Header;
import javazoom.jl.decoder.SampleBuffer;

/** Decodes MPEG audio of layer I, two channels at 448 kbit/s, by JLayer. */
final class Mpegaudio implements Member {
    /* Fields of a frame by ISO/IEC 11172-3. */
    private static final int FRAMES = 2000, FRAME_BYTES = 484, SUBBANDS = 32, CHANNELS = 2, GROUPS = 12;
    private static final int HEADER = 0xFFFFE000, SAMPLE_BITS = 4;

    private final byte[] stream = new byte[FRAMES * FRAME_BYTES];
    private int position;

    Mpegaudio() {
        Text text = new Text(12);
        for (int frame = 0; frame < FRAMES; frame++) {
            position = frame * FRAME_BYTES * 8;
            put(HEADER >>> 16, 16);
            put(HEADER & 0xFFFF, 16);
            for (int left = SUBBANDS * CHANNELS; left > 0; left--)
                put(SAMPLE_BITS - 1, 4);
            for (int left = SUBBANDS * CHANNELS; left > 0; left--)
                put(15 + text.next(40), 6);
            for (int left = SUBBANDS * CHANNELS * GROUPS; left > 0; left--)
                put(text.next((1 << SAMPLE_BITS) - 1), SAMPLE_BITS);
        }
    }

    private void put(int value, int bits) {
        for (int bit = bits - 1; bit >= 0; bit--, position++)
            if ((value >>> bit & 1) != 0)
                stream[position >> 3] |= 0x80 >>> (position & 7);
    }

    @Override
    public long operation() throws Exception {
        CRC32 sum = new CRC32();
        Bitstream bits = new Bitstream(new ByteArrayInputStream(stream));
        Decoder decoder = new Decoder();
        int frames = 0, loudest = 0;
        for (Header header = bits.readFrame(); header != null; header = bits.readFrame(), frames++) {
            SampleBuffer samples = (SampleBuffer) decoder.decodeFrame(header, bits);
            short[] values = samples.getBuffer();
            for (int at = 0; at < samples.getBufferLength(); at++) {
                sum.update(values[at] >>> 8);
                sum.update(values[at]);
                loudest = Math.max(loudest, values[at]);
            }
            bits.closeFrame();
        }
        if (frames != FRAMES)
            throw new IllegalStateException(frames + " frames were decoded of " + FRAMES);
        if (loudest < 1000)
            throw new IllegalStateException("nothing was decoded but silence");
        return sum.getValue();
    }
}
