package example.gradserve;

import java.net.http.HttpResponse.BodyHandler;
import java.net.http.HttpResponse.BodySubscriber;
import java.net.http.HttpResponse.BodySubscribers;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;

/** Reads the body of a response up to the size limit. */
final class LimitedBody implements BodySubscriber<byte[]> {
    private final BodySubscriber<byte[]> body = BodySubscribers.ofByteArray();
    private long left;
    private Flow.Subscription subscription;

    private LimitedBody(long most) {
        left = most;
    }

    /** Returns a handler that reads bodies up to this size, and rejects a longer Content-Length. */
    static BodyHandler<byte[]> upTo(long most) {
        return answer -> {
            boolean isLonger = answer.headers().firstValueAsLong("Content-Length").orElse(0) > most;
            return new LimitedBody(isLonger ? -1 : most);
        };
    }

    @Override
    public CompletionStage<byte[]> getBody() {
        return body.getBody();
    }

    @Override
    public void onSubscribe(Flow.Subscription given) {
        subscription = given;
        body.onSubscribe(given);
        if (left < 0) {
            giveUp();
        }
    }

    @Override
    public void onNext(List<ByteBuffer> buffers) {
        if (left < 0) {
            return;
        }
        left -= buffers.stream().mapToLong(ByteBuffer::remaining).sum();
        if (left < 0) {
            giveUp();
        } else {
            body.onNext(buffers);
        }
    }

    private void giveUp() {
        subscription.cancel();
        body.onError(new AnswerTooLargeException());
    }

    @Override
    public void onError(Throwable failure) {
        body.onError(failure);
    }

    @Override
    public void onComplete() {
        body.onComplete();
    }
}
