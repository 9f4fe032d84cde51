/**
 * Messages that wait for the homeserver, kept on the disk. Each has a transaction id of its own for all
 * attempts: the homeserver takes a message once, also when its answer was lost and it is sent again.
 */
import { createHash } from 'node:crypto';

const ANSWER_MS = 10_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 300_000;
/** What nobody could be told for this long, nobody wants to hear any more. */
const OLDEST_MS = 24 * 3_600_000;
const MOST = 200;

export async function openOutbox(ctx, signal) {
  const clock = ctx.use('clock');
  const document = await ctx.use('store').open('outbox', { version: 1, initial: [] });
  let letters = document.value;
  let problem;

  const keep = async (next) => {
    letters = next;
    await document.save(letters);
  };

  /** The same event has the same id, also after a restart. */
  const add = async ({ key, severity, message }) => {
    const at = clock.now();
    const id = createHash('sha256').update(key).digest('hex').slice(0, 32);
    if (letters.some((letter) => letter.id === id)) return;
    await keep(
      [...letters, { id, text: `[${severity}] ${message}`, at, attempts: 0, dueAt: at }].slice(-MOST),
    );
  };

  /** The oldest first, one after the other: a room shows messages in the order in which they came. */
  const sendDue = async (stop) => {
    for (let [letter] = letters; letter && letter.dueAt <= clock.now(); [letter] = letters) {
      const failure = await attempt(letter, AbortSignal.any([signal, stop]));
      if (signal.aborted || stop.aborted) return;
      const others = letters.filter(({ id }) => id !== letter.id);
      problem = failure?.why;
      if (failure === undefined) await keep(others);
      else if (failure.isFinal || clock.now() - letter.at > OLDEST_MS) {
        ctx.log.warn({ why: failure.why }, 'a message for Matrix was dropped');
        await keep(others);
      } else {
        const attempts = letter.attempts + 1;
        const pauseMs = failure.retryMs ?? Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** letter.attempts);
        await keep([{ ...letter, attempts, dueAt: clock.now() + pauseMs }, ...others]);
        return;
      }
    }
  };

  /** Undefined when the homeserver has it; else why not. */
  const attempt = async ({ id, text }, ended) => {
    const { homeserver, room, token } = ctx.config;
    const address = new URL(
      `/_matrix/client/v3/rooms/${encodeURIComponent(room)}/send/m.room.message/${id}`,
      homeserver,
    );
    try {
      const response = await fetch(address, {
        method: 'PUT',
        redirect: 'error',
        headers: {
          authorization: `Bearer ${ctx.use('secrets').resolve(token)}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ msgtype: 'm.text', body: text }),
        signal: AbortSignal.any([ended, AbortSignal.timeout(ANSWER_MS)]),
      });
      const answer = await response.json().catch(() => ({}));
      return response.ok ? undefined : refusal(response.status, answer ?? {});
    } catch (error) {
      return { why: error.cause?.message ?? error.message };
    }
  };

  return {
    add,
    sendDue,
    close: () => document.save(letters),
    get waiting() {
      return letters.length;
    },
    get problem() {
      return problem;
    },
  };
}

/** A wrong token or room may be mended in the configuration; a message that is too large stays so. */
function refusal(status, { errcode = 'no reason', error = '', retry_after_ms: retryMs }) {
  return {
    why: `the homeserver answered ${status}, ${errcode} ${error}`.trim(),
    isFinal: status === 400 || status === 413,
    ...(status === 429 && Number.isFinite(retryMs) && { retryMs }),
  };
}
