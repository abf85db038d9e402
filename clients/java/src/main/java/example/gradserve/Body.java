package example.gradserve;

import java.io.IOException;
import java.io.InputStream;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.List;

/** A body in pieces, which are sent without copying them together. */
record Body(String media, List<ByteBuffer> pieces) {
    static final Body NONE = new Body("", List.of());

    BodyPublisher publisher() {
        long length = pieces.stream().mapToLong(ByteBuffer::remaining).sum();
        return length == 0
            ? BodyPublishers.noBody()
            : BodyPublishers.fromPublisher(BodyPublishers.ofInputStream(() -> new Stream(pieces.iterator())), length);
    }

    private static final class Stream extends InputStream {
        private final Iterator<ByteBuffer> rest;
        private ByteBuffer piece = ByteBuffer.allocate(0);

        Stream(Iterator<ByteBuffer> pieces) {
            rest = pieces;
        }

        private boolean isAtEnd() {
            while (!piece.hasRemaining() && rest.hasNext()) {
                piece = rest.next().duplicate();
            }
            return !piece.hasRemaining();
        }

        @Override
        public int read() throws IOException {
            return isAtEnd() ? -1 : Byte.toUnsignedInt(piece.get());
        }

        @Override
        public int read(byte[] into, int offset, int length) throws IOException {
            if (isAtEnd()) {
                return -1;
            }
            int count = Math.min(length, piece.remaining());
            piece.get(into, offset, count);
            return count;
        }
    }
}
