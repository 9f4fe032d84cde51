import type { Provider } from './providers.ts';
import { providerOf } from './providers.ts';

/** Options that rclone expects obscured; used when the installed rclone cannot be asked. */
const PASSWORD_NAMES: ReadonlySet<string> = new Set([
  'pass',
  'password',
  'password2',
  'key_file_pass',
  'plex_password',
  'file_password',
  'folder_password',
  'api_password',
  'link_password',
  'library_key',
]);

/** True when rclone reads this option as an obscured password. */
export function isPasswordOption(
  providers: readonly Provider[] | undefined,
  type: string,
  name: string,
): boolean {
  const provider = providers && providerOf(providers, type);
  if (provider) return provider.options.some((option) => option.name === name && option.isPassword);
  return PASSWORD_NAMES.has(name);
}
