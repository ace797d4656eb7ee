package members;

/** One program of the suite. Each thread has an instance of its own, with its own input, which is the same everywhere. */
interface Member {
    /** Does one whole operation; the checksum of its result, the same each time. Throws where a check of its own fails. */
    long operation() throws Exception;

    /** Gives back what other members would find in memory. */
    default void close() throws Exception {}
}
