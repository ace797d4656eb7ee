package members;

import java.math.BigInteger;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.RSAPrivateKeySpec;
import java.security.spec.RSAPublicKeySpec;
import java.util.Arrays;
import java.util.zip.CRC32;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** Encrypts and decrypts a text with AES and triple DES, takes digests of it, and signs and verifies it with RSA. */
final class Crypto implements Member {
    private static final int SIGNATURES = 20;

    private final byte[] text = new Text(2).bytes(1 << 18);
    private final PrivateKey own;
    private final PublicKey known;

    Crypto() throws GeneralSecurityException {
        /* Two primes of Mersenne give a key that every machine has; it keeps no secret. */
        BigInteger one = BigInteger.ONE, p = one.shiftLeft(521).subtract(one), q = one.shiftLeft(607).subtract(one);
        BigInteger modulus = p.multiply(q), open = BigInteger.valueOf(65537);
        BigInteger hidden = open.modInverse(p.subtract(one).multiply(q.subtract(one)));
        KeyFactory keys = KeyFactory.getInstance("RSA");
        own = keys.generatePrivate(new RSAPrivateKeySpec(modulus, hidden));
        known = keys.generatePublic(new RSAPublicKeySpec(modulus, open));
    }

    @Override
    public long operation() throws GeneralSecurityException {
        CRC32 sum = new CRC32();
        sum.update(there("AES/CBC/PKCS5Padding", "AES", 16, 16));
        sum.update(there("DESede/CBC/PKCS5Padding", "DESede", 24, 8));
        for (String name : new String[] {"MD5", "SHA-1", "SHA-256", "SHA-512"})
            sum.update(MessageDigest.getInstance(name).digest(text));
        for (int round = 0; round < SIGNATURES; round++) {
            byte[] part = Arrays.copyOfRange(text, round * 1024, (round + 1) * 1024);
            Signature signature = Signature.getInstance("SHA256withRSA");
            signature.initSign(own);
            signature.update(part);
            byte[] signed = signature.sign();
            signature.initVerify(known);
            signature.update(part);
            if (!signature.verify(signed))
                throw new IllegalStateException("what was signed cannot be verified");
            sum.update(signed);
        }
        return sum.getValue();
    }

    /** The text encrypted, after it was decrypted again; key and first block are parts of the text itself. */
    private byte[] there(String method, String name, int key, int block) throws GeneralSecurityException {
        SecretKeySpec secret = new SecretKeySpec(Arrays.copyOf(text, key), name);
        IvParameterSpec first = new IvParameterSpec(Arrays.copyOfRange(text, key, key + block));
        Cipher cipher = Cipher.getInstance(method);
        cipher.init(Cipher.ENCRYPT_MODE, secret, first);
        byte[] encrypted = cipher.doFinal(text);
        cipher.init(Cipher.DECRYPT_MODE, secret, first);
        if (!Arrays.equals(cipher.doFinal(encrypted), text))
            throw new IllegalStateException("what was encrypted with " + name + " is not decrypted");
        return encrypted;
    }
}
