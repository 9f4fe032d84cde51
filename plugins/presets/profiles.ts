/** The presets, as data. The README gives the reason for every value. */
import type { ConfigPreset } from 'mountkeeper';

export interface MountParameters {
  readonly chunk_limit: string;
  readonly multi_thread_streams: number;
  readonly multi_thread_cutoff: string;
  readonly buffer_size: string;
  readonly write_back: string;
}

export const PROFILES = {
  photographer: {
    chunk_limit: '128M',
    multi_thread_streams: 4,
    multi_thread_cutoff: '16M',
    buffer_size: '32M',
    write_back: '10s',
  },
  video: {
    chunk_limit: '1G',
    multi_thread_streams: 8,
    multi_thread_cutoff: '64M',
    buffer_size: '256M',
    write_back: '30s',
  },
  office: {
    chunk_limit: '64M',
    multi_thread_streams: 2,
    multi_thread_cutoff: '32M',
    buffer_size: '128M',
    write_back: '5s',
  },
} as const satisfies Readonly<Record<string, MountParameters>>;

export type ProfileName = keyof typeof PROFILES;

const SHOWN_CHARACTERS = 40;

/** Throws a sentence that names the existing presets. */
export function parseProfile(text: string): ProfileName {
  if (Object.hasOwn(PROFILES, text)) return text as ProfileName;
  throw new Error(
    `unknown preset "${text.slice(0, SHOWN_CHARACTERS)}": the presets are ${Object.keys(PROFILES).join(', ')}`,
  );
}

/**
 * A copy of the document with the preset's parameters; everything else, including connections and shares,
 * is unchanged.
 */
export function withProfile(
  document: Readonly<Record<string, unknown>>,
  profile: ProfileName,
): Record<string, unknown> {
  const mount = typeof document['mount'] === 'object' ? document['mount'] : {};
  return { ...document, mount: { ...mount, ...PROFILES[profile] } };
}

const TITLES: Readonly<Record<ProfileName, ConfigPreset['title']>> = {
  photographer: { en: 'Photography', zh: '摄影' },
  video: { en: 'Video', zh: '视频' },
  office: { en: 'Office', zh: '办公' },
};

/** The same as edits of the text, key by key. */
export function presets(): readonly ConfigPreset[] {
  return Object.entries(PROFILES).map(([name, values]) => ({
    name,
    title: TITLES[name as ProfileName],
    edits: Object.entries(values).map(([key, value]) => ({ path: ['mount', key], value })),
  }));
}
