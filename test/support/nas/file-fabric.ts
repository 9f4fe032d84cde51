/**
 * A NAS that addresses folders by numbers, as most clouds do: just so much of an Enterprise File Fabric as rclone's
 * backend of that name asks for. It keeps all in memory.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Entry {
  readonly id: string;
  parent: string;
  name: string;
  /** Undefined for a folder. */
  readonly content?: Buffer;
  /** As the protocol writes it, in UTC. */
  readonly modified: string;
}

type Asked = Readonly<Record<string, string>>;
type Answer = Record<string, unknown>;

const ROOT = '';
const NEVER = '2020-01-01 00:00:00';

export class FileFabric {
  /** The options of rclone's remote, so that rclone neither signs in nor writes to its configuration. */
  readonly options: Readonly<Record<string, string>>;
  readonly #entries = new Map<string, Entry>();
  readonly #sent = new Map<string, { readonly asked: Asked; content: Buffer }>();
  readonly #close: () => Promise<void>;
  #count = 0;
  readonly #functions: Readonly<Record<string, (asked: Asked) => Answer>>;

  private constructor(port: number, close: () => Promise<void>) {
    this.#close = close;
    const rename = ({ fi_id: id, fi_name: name = '' }: Asked): Answer =>
      this.#change(id, (entry) => (entry.name = name));
    const move = ({ fi_ids: id, dir_id: parent = ROOT }: Asked): Answer =>
      this.#change(id, (entry) => (entry.parent = parent));
    this.#functions = {
      checkPathExists: ({ pid = ROOT, path = '' }) => this.#find(pid, path),
      getFolderContents: ({ fi_pid: parent = ROOT }) => this.#list(parent),
      doCreateNewFolder: ({ fi_pid: parent = ROOT, fi_name: name = '' }) => ({
        file: shown(this.#make(parent, name)),
      }),
      doInitUpload: (asked) => this.#begin(asked),
      doCompleteUpload: ({ uploadcode = '' }) => this.#complete(uploadcode),
      doRenameFile: rename,
      doRenameFolder: rename,
      doMoveFiles: move,
      doMoveFolders: move,
      doModifyFile: ({ fi_id: id }) => this.#change(id, () => undefined),
      doDeleteFile: ({ fi_id: id }) => this.#delete(id),
      doDeleteFolder: ({ fi_id: id }) => this.#delete(id),
    };
    this.options = {
      url: `http://127.0.0.1:${port}`,
      permanent_token: 'fabric',
      token: 'session',
      token_expiry: '2099-01-01T00:00:00Z',
      version: '2006.02',
    };
  }

  /** Listens on loopback until `close`. */
  static async start(): Promise<FileFabric> {
    let fabric: FileFabric | undefined;
    const server = createServer((request, response) => {
      bodyOf(request)
        .then((body) => fabric!.#answer(new URL(request.url ?? '', 'http://fabric'), body))
        .then(
          (answer) => response.end(Buffer.isBuffer(answer) ? answer : JSON.stringify(answer)),
          (error: unknown) => response.writeHead(500).end(String(error)),
        );
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    fabric = new FileFabric((server.address() as AddressInfo).port, async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    });
    return fabric;
  }

  close(): Promise<void> {
    return this.#close();
  }

  /** Makes a file with what is above it, as others do. */
  put(path: string, text: string): void {
    const names = path.split('/');
    const name = names.pop() ?? '';
    let parent = ROOT;
    for (const one of names) parent = (this.#child(parent, one) ?? this.#make(parent, one)).id;
    this.#make(parent, name, Buffer.from(text));
  }

  /** Path → content of each file, `/` for a folder. */
  tree(): Readonly<Record<string, string>> {
    const all = [...this.#entries.values()].map(
      (entry) => [this.#pathOf(entry), entry.content?.toString() ?? '/'] as const,
    );
    return Object.fromEntries(all.sort(([one], [other]) => (one < other ? -1 : 1)));
  }

  #pathOf({ parent, name }: Entry): string {
    const above = this.#entries.get(parent);
    return above === undefined ? name : `${this.#pathOf(above)}/${name}`;
  }

  #child(parent: string, name: string): Entry | undefined {
    return [...this.#entries.values()].find((one) => one.parent === parent && one.name === name);
  }

  #make(parent: string, name: string, content?: Buffer, modified = NEVER): Entry {
    this.#count += 1;
    const entry = {
      id: `n${this.#count}`,
      parent,
      name,
      modified,
      ...(content !== undefined && { content }),
    };
    this.#entries.set(entry.id, entry);
    return entry;
  }

  #answer({ pathname, search }: URL, body: Buffer): Answer | Buffer {
    if (pathname.startsWith('/cgi-bin/')) {
      this.#sent.get(search.slice(1))!.content = body;
      return { success: 'y', filesize: String(body.length) };
    }
    const asked = Object.fromEntries(new URLSearchParams(body.toString()));
    if (asked['function'] === 'getFile') return this.#entries.get(asked['fi_id']!)!.content!;
    return { status: 'ok', ...this.#done(asked['function'] ?? '', asked) };
  }

  #done(what: string, asked: Asked): Answer {
    const done = this.#functions[what];
    if (done === undefined) throw new Error(`${what} is not played`);
    return done(asked);
  }

  #list(parent: string): Answer {
    const inside = [...this.#entries.values()].filter((one) => one.parent === parent);
    return { total: String(inside.length), filelist: inside.map(shown) };
  }

  #begin(asked: Asked): Answer {
    const uploadcode = `u${(this.#count += 1)}`;
    this.#sent.set(uploadcode, { asked, content: Buffer.alloc(0) });
    return { uploadcode };
  }

  #change(id: string | undefined, change: (entry: Entry) => void): Answer {
    const entry = this.#entries.get(id ?? '')!;
    change(entry);
    return { file: shown(entry) };
  }

  #delete(id: string | undefined): Answer {
    this.#entries.delete(id ?? '');
    return {};
  }

  #find(from: string, path: string): Answer {
    let entry: Entry | undefined;
    for (const name of path.split('/').filter((one) => one !== '')) {
      entry = this.#child(entry?.id ?? from, name);
      if (entry === undefined) return { exists: 'n' };
    }
    return entry === undefined ? { exists: 'n' } : { exists: 'y', file: shown(entry) };
  }

  #complete(code: string): Answer {
    const { asked, content } = this.#sent.get(code)!;
    const { fi_pid: parent = ROOT, fi_name: name = '', fi_localtime: modified } = asked;
    const former = this.#child(parent, name);
    if (former !== undefined) this.#entries.delete(former.id);
    const made = this.#make(parent, name, content, modified);
    return { uploadedsize: String(content.length), file: { ...shown(made), ...typeOf(asked) } };
  }
}

function shown({ id, parent, name, content, modified }: Entry): Answer {
  return {
    fi_id: id,
    fi_pid: parent,
    fi_name: name,
    fi_type: content === undefined ? '1' : '0',
    fi_size: String(content?.length ?? 0),
    fi_contenttype: 'application/octet-stream',
    fi_modified: modified,
    fi_localtime: modified,
    trash: false,
    subfolders: 0,
  };
}

/** The very type that was sent, or rclone sets it right. */
function typeOf({ fi_contenttype: type }: Asked): Answer {
  return { fi_contenttype: type };
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}
