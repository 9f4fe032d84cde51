import { isAnybodyAsked } from 'mountkeeper';
import type { Check, WebConfig } from 'mountkeeper';
import { exposureOf } from './exposure.ts';

export function passwordCheck(web: WebConfig, isRoot: boolean): Check {
  const title = 'web password';
  const found = exposureOf(web, isRoot);
  if (found) return { title, result: 'warning', detail: found.line, advice: found.notice.message };
  const detail = isAnybodyAsked(web) ? 'set' : `none; ${web.listen} is for this machine alone`;
  return { title, result: 'ok', detail, advice: '' };
}
