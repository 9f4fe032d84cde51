import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import pino from 'pino';
import type { EventSink, StreamEvent } from 'mountkeeper';
import { Feed } from '../../../../plugins/dashboard/live/feed.ts';
import type { Part } from '../../../../plugins/dashboard/live/feed.ts';

const log = pino({ level: 'silent' });

class Page {
  readonly texts = new Map<string, string>();
  drawings = 0;
  readonly feed = new Feed(
    {
      title: 'page',
      parts: () =>
        [...this.texts].map(([id, text]): Part => ({
          id,
          signature: () => text,
          draw: () => {
            this.drawings += 1;
            return `<p>${text}</p>`;
          },
        })),
      frame: (drawn) => `<main>${[...this.texts.keys()].map(drawn).join('')}</main>`,
    },
    log,
  );
}

class Reader implements EventSink {
  readonly got: StreamEvent[] = [];
  send(event: StreamEvent): void {
    this.got.push(event);
  }
  sendAll(events: readonly StreamEvent[]): void {
    this.got.push(...events);
  }
  end(): void {
    this.got.length = 0;
  }
  take(): readonly (readonly [string, string])[] {
    return this.got.splice(0).map(({ event, data }) => [event, data] as const);
  }
}

async function opened(texts: Readonly<Record<string, string>>): Promise<Page> {
  const page = new Page();
  for (const [id, text] of Object.entries(texts)) page.texts.set(id, text);
  await page.feed.refresh();
  return page;
}

describe('a feed', () => {
  it('sends only what has changed, and draws nothing else', async () => {
    const page = await opened({ a: '1', b: '1' });
    const reader = new Reader();
    page.feed.join(reader, page.feed.position);
    await page.feed.refresh();
    assert.deepEqual(reader.take(), []);
    const before = page.drawings;
    page.texts.set('b', '2');
    await page.feed.refresh();
    assert.deepEqual(reader.take(), [['b', '<p>2</p>']]);
    assert.equal(page.drawings, before + 1);
  });

  it('keeps what it drew last, and never rejects, when the list of parts cannot be made', async () => {
    let isBroken = true;
    const feed = new Feed(
      {
        title: 'page',
        frame: (drawn) => `<main>${drawn('a')}</main>`,
        parts: () => {
          if (isBroken) throw new Error('broken');
          return [{ id: 'a', draw: () => 'A' }];
        },
      },
      log,
    );
    await feed.refresh();
    assert.equal(feed.html(), '');
    isBroken = false;
    await feed.refresh();
    isBroken = true;
    await feed.refresh();
    assert.equal(feed.html(), '<main>A</main>');
  });

  it('draws once what is other and looks the same', async () => {
    let signature = 'a';
    let drawings = 0;
    const feed = new Feed(
      {
        title: 'page',
        frame: () => '',
        parts: () => [
          {
            id: 'x',
            signature: () => signature,
            draw: () => {
              drawings += 1;
              return '<p>same</p>';
            },
          },
        ],
      },
      log,
    );
    await feed.refresh();
    const reader = new Reader();
    feed.join(reader, feed.position);
    signature = 'b';
    for (let times = 0; times < 3; times += 1) await feed.refresh();
    assert.deepEqual([drawings, reader.take()], [2, []]);
  });

  it('gives a reader who comes back what has changed since, and all of it to one of another time', async () => {
    const page = await opened({ a: '1', b: '1' });
    const seen = page.feed.position;
    page.texts.set('a', '2');
    await page.feed.refresh();
    const [back, stranger, upToDate] = [new Reader(), new Reader(), new Reader()];
    page.feed.join(back, seen);
    page.feed.join(stranger, 'of-before');
    page.feed.join(upToDate, page.feed.position);
    assert.deepEqual(back.take(), [['a', '<p>2</p>']]);
    assert.deepEqual(stranger.take(), [['frame', '<main><p>2</p><p>1</p></main>']]);
    assert.deepEqual(upToDate.take(), []);
  });

  it('sends nothing to who comes back to a page that is not drawn yet, and then all of it', async () => {
    const page = new Page();
    page.texts.set('a', '1');
    const reader = new Reader();
    page.feed.join(reader, 'oldepoch-7');
    assert.deepEqual(reader.take(), []);
    await page.feed.refresh();
    assert.deepEqual(reader.take(), [['frame', '<main><p>1</p></main>']]);
  });

  it('sends the page whole when a part comes or goes, also to who was away then', async () => {
    const page = await opened({ a: '1', b: '1' });
    const seen = page.feed.position;
    const reader = new Reader();
    page.feed.join(reader, seen);
    page.texts.delete('b');
    await page.feed.refresh();
    assert.deepEqual(reader.take(), [['frame', '<main><p>1</p></main>']]);
    const late = new Reader();
    page.feed.join(late, seen);
    assert.deepEqual(late.take(), [['frame', '<main><p>1</p></main>']]);
  });

  it('sends the page whole when its layout is another one, and what stands beside it again', async () => {
    let layout: readonly unknown[] = [log];
    let links = 'a b';
    const feed = new Feed(
      {
        title: 'page',
        layout: () => layout,
        parts: () => [{ id: 'links', isOutside: true, draw: () => links }],
        frame: () => `<main>${layout.length}</main>`,
      },
      log,
    );
    await feed.refresh();
    assert.equal(feed.part('links'), 'a b');
    const seen = feed.position;
    const reader = new Reader();
    feed.join(reader, seen);
    layout = [log];
    await feed.refresh();
    assert.deepEqual(reader.take(), [], 'the same things in another list');
    layout = [log, 'button'];
    links = 'a';
    await feed.refresh();
    const whole = [
      ['frame', '<main>2</main>'],
      ['links', 'a'],
    ];
    assert.deepEqual(reader.take(), whole);
    const late = new Reader();
    feed.join(late, seen);
    assert.deepEqual(late.take(), whole);
  });

  it('numbers its events so that the last one says all that was seen', async () => {
    const page = await opened({ a: '1' });
    const reader = new Reader();
    page.feed.join(reader, page.feed.position);
    page.texts.set('a', '2');
    await page.feed.refresh();
    assert.equal(reader.got.at(-1)?.id, page.feed.position);
  });

  it('tells a position only behind all that belongs to it, for who is cut off in between', async () => {
    const page = await opened({ a: '1', b: '1' });
    const reader = new Reader();
    const seen = page.feed.position;
    page.feed.join(reader, seen);
    page.texts.set('a', '2');
    page.texts.set('b', '2');
    await page.feed.refresh();
    assert.deepEqual(
      reader.got.map(({ event, id }) => [event, id]),
      [
        ['a', undefined],
        ['b', page.feed.position],
      ],
    );
    const [first] = reader.got;
    const back = new Reader();
    page.feed.join(back, first?.id ?? seen);
    assert.deepEqual(back.take().at(-1), ['b', '<p>2</p>']);
  });

  it('sends figures alone, all of a part at once, and draws the part again for who opens the page', async () => {
    let shape = 'a';
    let figure = '1';
    let drawings = 0;
    const feed = new Feed(
      {
        title: 'page',
        parts: () => [
          {
            id: 'x',
            signature: () => shape,
            values: () => ({ speed: figure }),
            draw: () => {
              drawings += 1;
              return `${shape} ${figure}`;
            },
          },
        ],
        frame: (drawn) => `<main>${drawn('x')}</main>`,
      },
      log,
    );
    await feed.refresh();
    const [there, away] = [new Reader(), feed.position];
    feed.join(there, away);
    figure = '2';
    await feed.refresh();
    const values = ['values', '{"id":"x","values":{"speed":"2"}}'] as const;
    assert.equal(there.got[0]?.replaces, 'values x');
    assert.deepEqual([there.take(), drawings], [[values], 1]);
    // Who comes back gets the figures, a stranger the former markup and then the figures.
    const [back, stranger] = [new Reader(), new Reader()];
    feed.join(back, away);
    feed.join(stranger, undefined);
    assert.deepEqual(back.take(), [values]);
    assert.deepEqual(stranger.take(), [['frame', '<main>a 1</main>'], values]);
    there.take();
    await feed.refresh({ isWhole: true });
    assert.deepEqual([feed.html(), drawings, there.take()], ['<main>a 2</main>', 2, []]);
    feed.join(back, feed.position);
    assert.deepEqual(back.take(), []);
    shape = 'b';
    figure = '3';
    await feed.refresh();
    assert.deepEqual(there.take(), [['x', 'b 3']]);
  });

  it('claims for a page that is opened while it draws nothing that is not drawn yet', async () => {
    let finish = (): void => undefined;
    let text = '1';
    const feed = new Feed(
      {
        title: 'page',
        parts: () => [
          { id: 'quick', draw: () => text },
          {
            id: 'slow',
            draw: () =>
              text === '1' ? text : new Promise<string>((resolve) => (finish = () => resolve(text))),
          },
        ],
        frame: (drawn) => drawn('quick'),
      },
      log,
    );
    await feed.refresh();
    text = '2';
    const drawing = feed.refresh();
    await new Promise((resolve) => setImmediate(resolve));
    const { position } = feed;
    assert.equal(feed.html(), '1');
    finish();
    await drawing;
    const reader = new Reader();
    feed.join(reader, position);
    assert.deepEqual(reader.take(), [
      ['quick', '2'],
      ['slow', '2'],
    ]);
  });

  it('has nobody to tell who has left', async () => {
    const page = await opened({ a: '1' });
    const reader = new Reader();
    const leave = page.feed.join(reader, page.feed.position);
    leave();
    page.texts.set('a', '2');
    await page.feed.refresh();
    assert.deepEqual([reader.take(), page.feed.readers], [[], 0]);
  });
});
