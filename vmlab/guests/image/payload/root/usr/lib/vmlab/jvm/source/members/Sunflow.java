package members;

import java.util.zip.CRC32;
import org.sunflow.SunflowAPI;
import org.sunflow.core.Display;
import org.sunflow.image.Color;
import org.sunflow.math.Matrix4;
import org.sunflow.math.Point3;
import org.sunflow.math.Vector3;
import org.sunflow.system.UI;

/** Renders a picture of spheres on a plane by Sunflow, with shadows, mirrors and glass, with one thread. */
final class Sunflow implements Member {
    private static final int WIDTH = 160, HEIGHT = 120, SPHERES = 40;

    static {
        UI.set(null);
    }

    @Override
    public long operation() {
        SunflowAPI scene = new SunflowAPI();
        placed = 0;
        scene.parameter("transform", Matrix4.lookAt(new Point3(0, -14, 6), new Point3(0, 0, 1), new Vector3(0, 0, 1)));
        scene.parameter("fov", 45f);
        scene.parameter("aspect", (float) WIDTH / HEIGHT);
        scene.camera("camera", "pinhole");
        scene.parameter("diffuse", null, 0.7f, 0.7f, 0.6f);
        scene.shader("floor", "diffuse");
        scene.parameter("color", null, 0.8f, 0.8f, 0.9f);
        scene.shader("mirror", "mirror");
        scene.parameter("eta", 1.5f);
        scene.shader("glass", "glass");
        scene.parameter("center", new Point3(0, 0, 0));
        scene.parameter("normal", new Vector3(0, 0, 1));
        scene.geometry("plane", "plane");
        place(scene, "plane", "floor", null);
        scene.geometry("sphere", "sphere");
        Text text = new Text(13);
        String[] shaders = {"floor", "mirror", "glass"};
        for (int at = 0; at < SPHERES; at++) {
            float size = 0.3f + (float) text.fraction() * 0.7f, x = (float) text.fraction() * 12 - 6;
            Matrix4 there = Matrix4.translation(x, (float) text.fraction() * 12 - 6, size);
            place(scene, "sphere", shaders[at % 3], there.multiply(Matrix4.scale(size)));
        }
        scene.parameter("center", new Point3(-6, -8, 12));
        scene.parameter("radius", 1.5f);
        scene.parameter("samples", 8);
        scene.parameter("radiance", null, 60f, 60f, 60f);
        scene.light("lamp", "sphere");
        scene.parameter("camera", "camera");
        scene.parameter("resolutionX", WIDTH);
        scene.parameter("resolutionY", HEIGHT);
        scene.parameter("aa.min", 0);
        scene.parameter("aa.max", 1);
        scene.parameter("threads", 1);
        scene.parameter("threads.lowPriority", false);
        scene.options(SunflowAPI.DEFAULT_OPTIONS);
        Picture picture = new Picture();
        scene.render(SunflowAPI.DEFAULT_OPTIONS, picture);
        return picture.checksum();
    }

    private int placed;

    private void place(SunflowAPI scene, String geometry, String shader, Matrix4 there) {
        if (there != null)
            scene.parameter("transform", there);
        scene.parameter("shaders", new String[] {shader});
        scene.instance(geometry + ".instance." + placed++, geometry);
    }

    /** The pixels, wherever and in whatever order they were made. */
    private static final class Picture implements Display {
        private final int[] pixels = new int[WIDTH * HEIGHT];

        @Override
        public void imageBegin(int width, int height, int bucket) {}

        @Override
        public void imagePrepare(int x, int y, int width, int height, int thread) {}

        @Override
        public void imageUpdate(int x, int y, int width, int height, Color[] colors, float[] alpha) {
            for (int at = 0; at < colors.length; at++)
                pixels[(y + at / width) * WIDTH + x + at % width] = colors[at].copy().clamp(0, 1).toNonLinear().toRGB() | 1 << 24;
        }

        @Override
        public void imageFill(int x, int y, int width, int height, Color color, float alpha) {
            throw new IllegalStateException("a part of the picture was filled, not rendered");
        }

        @Override
        public void imageEnd() {}

        long checksum() {
            CRC32 sum = new CRC32();
            int colours = 0;
            for (int pixel : pixels) {
                if (pixel == 0)
                    throw new IllegalStateException("a part of the picture was not rendered");
                for (int shift = 0; shift < 24; shift += 8)
                    sum.update(pixel >>> shift);
                colours = Math.max(colours, pixel & 255);
            }
            if (colours < 64)
                throw new IllegalStateException("the picture is dark");
            return sum.getValue();
        }
    }
}
