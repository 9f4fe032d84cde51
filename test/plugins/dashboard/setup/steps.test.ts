import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { renderToString } from 'preact-render-to-string';
import type { VNode } from 'preact';
import type { View } from '../../../../core/contract/dashboard.ts';
import { doneStep } from '../../../../plugins/dashboard/setup/steps.ts';
import { lanAddresses } from '../../../../plugins/setup/addresses.ts';

const VIEW = { t: (key: string) => key } as unknown as View;

describe('the last step of the guide on the page', () => {
  it('shows addresses that people can read and shells can run', () => {
    const server = { user: "o'neil", host: 'keeper', port: 445, listen: [] };
    const page = renderToString(doneStep(lanAddresses(['照片 A'], server), undefined, VIEW) as VNode);
    assert.ok(page.includes('<bdi>smb://keeper/照片 A</bdi>'), page);
    assert.ok(page.includes(`data-copy="smb://keeper/${encodeURIComponent('照片 A')}"`));
    assert.ok(page.includes(String.raw`data-copy="\\keeper\照片 A"`));
    assert.ok(page.includes(String.raw`'//keeper/照片 A' /mnt -o 'username=o'\''neil'`), page);
    assert.ok(!page.includes('done-local'));
    assert.match(renderToString(doneStep([], undefined, VIEW) as VNode), /done-local/);
  });
});
