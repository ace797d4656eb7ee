package members;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.eclipse.jdt.internal.compiler.ClassFile;
import org.eclipse.jdt.internal.compiler.CompilationResult;
import org.eclipse.jdt.internal.compiler.batch.Main;

/** Compiles the sources of other members by Eclipse's compiler, in memory, and lets what was compiled do some work. */
final class Compiler implements Member {
    private static final List<String> SOURCES =
        List.of("Member", "Text", "Compress", "Crypto", "Order", "Serial", "Xml", "Scimark");
    private static final int ROUNDS = 3;

    @Override
    public long operation() throws Exception {
        long sum = 0;
        for (int round = 0; round < ROUNDS; round++)
            sum = sum * 31 + once();
        return sum;
    }

    /** A checksum of the classes' names and of a text that they make; what is in a class depends on the compiler. */
    private static long once() throws Exception {
        Map<String, byte[]> classes = compile();
        ClassLoader loader = new ClassLoader(ClassLoader.getPlatformClassLoader()) {
            @Override
            protected Class<?> findClass(String name) throws ClassNotFoundException {
                byte[] bytes = classes.get(name);
                if (bytes == null)
                    throw new ClassNotFoundException(name);
                return defineClass(name, bytes, 0, bytes.length);
            }
        };
        for (String name : classes.keySet())
            Class.forName(name, true, loader);
        Class<?> text = loader.loadClass("members.Text");
        Constructor<?> made = text.getDeclaredConstructor(long.class);
        Method bytes = text.getDeclaredMethod("bytes", int.class);
        made.setAccessible(true);
        bytes.setAccessible(true);
        return classes.keySet().hashCode() * 31L + Arrays.hashCode((byte[]) bytes.invoke(made.newInstance(11L), 5000));
    }

    /** The classes that the compiler makes, by name, in order. Throws where it finds a fault in the sources. */
    private static Map<String, byte[]> compile() {
        Map<String, byte[]> classes = new TreeMap<>();
        StringWriter said = new StringWriter();
        PrintWriter out = new PrintWriter(said);
        Main compiler = new Main(out, out, false, null, null) {
            @Override
            public void outputClassFiles(CompilationResult result) {
                if (result != null && !result.hasErrors())
                    for (ClassFile made : result.getClassFiles())
                        classes.put(new String(made.fileName()).replace('/', '.'), made.getBytes());
            }
        };
        List<String> words = new ArrayList<>();
        Collections.addAll(words, "-source", "17", "-target", "17", "-proc:none", "-nowarn", "-g");
        /* Eclipse's compiler would print a trace for each jar that is not there. */
        words.add("-cp");
        words.add(Stream.of(System.getProperty("java.class.path").split(":"))
            .filter(place -> Files.exists(Path.of(place))).collect(Collectors.joining(":")));
        for (String source : SOURCES)
            words.add(System.getProperty("members.source") + "/members/" + source + ".java");
        if (!compiler.compile(words.toArray(new String[0])))
            throw new IllegalStateException("the sources do not compile: " + said.toString().strip().replace('\n', ' '));
        return classes;
    }
}
